/** Requests and answers for the contract, complete and valid; each test changes one thing. */

import assert from 'node:assert/strict';
import type { Contract } from '../../src/contract/contract.ts';
import { prepareCombined, prepareContract } from '../../src/contract/contract.ts';
import type { Deviation } from '../../src/contract/deviation.ts';
import { inspectRequest, type JudgedRequest, judgeRequest } from '../../src/contract/judge-request.ts';
import { inspectResponse, type JudgedResponse, judgeResponse } from '../../src/contract/judge-response.ts';

/** A day before the dates of all examples. */
export const receivedAtMs = Date.UTC(2017, 0, 2, 12);

export const contract6: Contract = await prepareContract({ standardVersion: '1.3.6' });
export const contract11: Contract = await prepareContract({ standardVersion: '1.3.11' });
export const bothContracts: readonly Contract[] = [contract6, contract11];
const satisfiesBoth = await prepareCombined([{ standardVersion: '1.3.6' }, { standardVersion: '1.3.11' }]);

type Json = Readonly<Record<string, unknown>>;

/** An own field without a value is left out of the body. */
export const single = (changes: Json = {}): Json => ({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE40100100103307118608' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  remittanceInformationUnstructured: 'Ref Number Merchant',
  ...changes,
});

export const bulkElement = (changes: Json = {}): Json => ({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  ...changes,
});

export const bulk = (changes: Json = {}, element: Json = {}): Json => ({
  batchBookingPreferred: true,
  debtorAccount: { iban: 'DE40100100103307118608' },
  requestedExecutionDate: '2027-08-01',
  payments: [bulkElement(), bulkElement(element)],
  ...changes,
});

export const standingOrder = (changes: Json = {}): Json => ({
  startDate: '2027-03-01',
  executionRule: 'preceding',
  frequency: 'Monthly',
  dayOfExecution: '1',
  ...changes,
});

export const periodic = (changes: Json = {}): Json => ({ ...single(), ...standingOrder(), ...changes });

/** A document with one group. Most tests replace something in it. */
export const pain001 = (
  content: string = transferXml(),
  count = 1,
): string => `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.03">
  <CstmrCdtTrfInitn>
    <GrpHdr>
      <MsgId>M-1</MsgId>
      <CreDtTm>2027-02-14T20:23:34.000Z</CreDtTm>
      <NbOfTxs>${count}</NbOfTxs>
      <InitgPty><Nm>TPP</Nm></InitgPty>
    </GrpHdr>
    <PmtInf>
      <PmtInfId>P-1</PmtInfId>
      <PmtMtd>TRF</PmtMtd>
      <PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl></PmtTpInf>
      <ReqdExctnDt>2027-02-15</ReqdExctnDt>
      <Dbtr><Nm>PSU Name</Nm></Dbtr>
      <DbtrAcct><Id><IBAN>DE40100100103307118608</IBAN></Id></DbtrAcct>
      <DbtrAgt><FinInstnId><BIC>DEUTDEFFXXX</BIC></FinInstnId></DbtrAgt>
      <ChrgBr>SLEV</ChrgBr>
      ${content}
    </PmtInf>
  </CstmrCdtTrfInitn>
</Document>
`;

export const transferXml = (
  amount = '<InstdAmt Ccy="EUR">123.50</InstdAmt>',
  iban = 'DE02100100109307118603',
) => `<CdtTrfTxInf>
        <PmtId><EndToEndId>E-1</EndToEndId></PmtId>
        <Amt>${amount}</Amt>
        <Cdtr><Nm>Merchant123</Nm></Cdtr>
        <CdtrAcct><Id><IBAN>${iban}</IBAN></Id></CdtrAcct>
        <RmtInf><Ustrd>Ref Number Merchant</Ustrd></RmtInf>
      </CdtTrfTxInf>`;

const boundary = 'AaB03x';

/** Each part is its name, its type and its content. */
export const multipart = (
  parts: readonly (readonly [name: string, type: string, content: string])[] = partsOf(),
  end = `--${boundary}--\r\n`,
): string =>
  parts
    .map(
      ([name, type, content]) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\n${content}\r\n`,
    )
    .join('') + end;

export const partsOf = (order: Json = standingOrder(), xml: string = pain001()) =>
  [
    ['xml_sct', 'application/xml', xml],
    ['json_standingorderType', 'application/json', JSON.stringify(order)],
  ] as const;

export interface Changes {
  readonly product?: string;
  /** An object is sent as JSON. */
  readonly body?: string | Buffer | Json;
  /** `undefined` removes a header. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly receivedAtMs?: number;
  readonly initiatedAs?: JudgedRequest['initiatedAs'];
}

const initiationHeaders = {
  'X-Request-ID': '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  'PSU-IP-Address': '192.168.8.78',
  Accept: 'application/json',
  'Content-Type': 'application/json',
  'TPP-Redirect-Preferred': 'true',
  'TPP-Redirect-URI': 'https://tpp.example/cb/ok',
};

function requestWith(
  operation: JudgedRequest['operation'],
  paymentService: string,
  defaults: { readonly product?: string; readonly contentType?: string; readonly body: string | Json },
  changes: Changes,
): JudgedRequest {
  const headers = {
    ...initiationHeaders,
    'Content-Type': defaults.contentType ?? 'application/json',
    ...changes.headers,
  };
  const body = changes.body ?? defaults.body;
  return {
    operation,
    paymentService,
    paymentProduct: changes.product ?? defaults.product ?? 'sepa-credit-transfers',
    headers: Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    body: Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    receivedAtMs: changes.receivedAtMs ?? receivedAtMs,
    initiatedAs: changes.initiatedAs,
  };
}

/** The requests of each kind, valid in both versions. */
export const request = {
  single: (body: Json = single(), changes: Changes = {}) =>
    requestWith('initiatePayment', 'payments', { body }, changes),
  bulk: (body: Json = bulk(), changes: Changes = {}) =>
    requestWith('initiatePayment', 'bulk-payments', { body }, changes),
  periodic: (body: Json = periodic(), changes: Changes = {}) =>
    requestWith('initiatePayment', 'periodic-payments', { body }, changes),
  xml: (body: string = pain001(), changes: Changes = {}, service = 'payments') =>
    requestWith(
      'initiatePayment',
      service,
      { body, product: 'pain.001-sepa-credit-transfers', contentType: 'application/xml' },
      changes,
    ),
  multipart: (body: string = multipart(), changes: Changes = {}) =>
    requestWith(
      'initiatePayment',
      'periodic-payments',
      {
        body,
        product: 'pain.001-sepa-credit-transfers',
        contentType: `multipart/form-data; boundary=${boundary}`,
      },
      changes,
    ),
  authorisation: (body: Json | string = {}, changes: Changes = {}) =>
    requestWith('startAuthorisation', 'payments', { body }, changes),
  update: (body: Json | string = {}, changes: Changes = {}) =>
    requestWith('updatePsuData', 'payments', { body }, changes),
  read: (operation: JudgedRequest['operation'] = 'getPayment', changes: Changes = {}) =>
    requestWith(operation, 'payments', { body: '' }, { headers: { 'Content-Type': undefined }, ...changes }),
} as const;

/** The deviations from each contract, with the combined check, which must not change them. */
export function deviationsOf(contracts: readonly Contract[], judged: JudgedRequest): readonly Deviation[] {
  const [alone, combined] = [inspectRequest(judged), inspectRequest(judged, satisfiesBoth)];
  return contracts.flatMap((contract) => {
    const deviations = judgeRequest(contract, alone);
    if (bothContracts.includes(contract)) assert.deepEqual(judgeRequest(contract, combined), deviations);
    return deviations;
  });
}

/** The deviations as texts: level, rule, path, effect. */
export const verdictOf = (contract: Contract, judged: JudgedRequest): readonly string[] =>
  deviationsOf([contract], judged).map(
    ({ level, rule, path, effect }) => `${level} ${rule} ${path} ${effect}`,
  );

export const harmfulOf = (contract: Contract, judged: JudgedRequest): readonly string[] =>
  deviationsOf([contract], judged)
    .filter(({ level }) => level === 'harmful')
    .map(({ rule, path }) => `${rule} ${path}`);

export function answer(
  operation: JudgedResponse['operation'],
  status: number,
  body: Json | string | undefined,
  changes: {
    readonly headers?: Readonly<Record<string, string | undefined>>;
    readonly product?: string;
  } = {},
): JudgedResponse {
  const headers = {
    'X-Request-ID': '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...changes.headers,
  };
  return {
    operation,
    paymentService: operation === 'getPeriodicPayment' ? 'periodic-payments' : 'payments',
    paymentProduct: changes.product ?? 'sepa-credit-transfers',
    status,
    headers: Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    body: Buffer.from(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)),
  };
}

export const answerVerdictOf = (contract: Contract, judged: JudgedResponse): readonly string[] =>
  judgeResponse(contract, inspectResponse(judged)).map(
    ({ level, rule, path, effect }) => `${level} ${rule} ${path} ${effect}`,
  );
