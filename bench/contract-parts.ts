/** The contract: what each kind of message costs when one version judges it. */

import { prepareContract } from '../src/contract/contract.ts';
import { inspectRequest, type JudgedRequest, judgeRequest } from '../src/contract/judge-request.ts';
import { inspectResponse, type JudgedResponse, judgeResponse } from '../src/contract/judge-response.ts';

const contract = await prepareContract({ standardVersion: '1.3.11' });

const debtorAccount = { iban: 'DE40100100103307118608' };
const transfer = {
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  remittanceInformationUnstructured: 'Ref Number Merchant',
};
const transferXml = `<CdtTrfTxInf><PmtId><EndToEndId>RI-123456789</EndToEndId></PmtId>
<Amt><InstdAmt Ccy="EUR">123.50</InstdAmt></Amt><Cdtr><Nm>Merchant123</Nm></Cdtr>
<CdtrAcct><Id><IBAN>DE02100100109307118603</IBAN></Id></CdtrAcct>
<RmtInf><Ustrd>Ref Number Merchant-123456</Ustrd></RmtInf></CdtTrfTxInf>`;
const pain001 = (
  count: number,
) => `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.03"><CstmrCdtTrfInitn>
<GrpHdr><MsgId>MIPI-123456789RI-123456789</MsgId><CreDtTm>2027-02-14T20:23:34.000Z</CreDtTm><NbOfTxs>${count}</NbOfTxs>
<CtrlSum>${(123.5 * count).toFixed(2)}</CtrlSum><InitgPty><Nm>PaymentInitiator</Nm></InitgPty></GrpHdr>
<PmtInf><PmtInfId>BIPI-123456789RI-123456789</PmtInfId><PmtMtd>TRF</PmtMtd><PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl></PmtTpInf>
<ReqdExctnDt>2027-02-15</ReqdExctnDt><Dbtr><Nm>PSU Name</Nm></Dbtr><DbtrAcct><Id><IBAN>DE40100100103307118608</IBAN></Id></DbtrAcct>
<DbtrAgt><FinInstnId><BIC>DEUTDEFFXXX</BIC></FinInstnId></DbtrAgt><ChrgBr>SLEV</ChrgBr>
${transferXml.repeat(count)}</PmtInf></CstmrCdtTrfInitn></Document>`;
const part = (name: string, type: string, content: string) =>
  `--AaB03x\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\n${content}\r\n`;
const periodicParts = `${part('xml_sct', 'application/xml', pain001(1))}${part(
  'json_standingorderType',
  'application/json',
  '{"startDate":"2027-03-01","frequency":"Monthly","executionRule":"preceding","dayOfExecution":"1"}',
)}--AaB03x--\r\n`;

const initiation = (
  paymentService: string,
  paymentProduct: string,
  contentType: string,
  body: string,
): JudgedRequest => ({
  operation: 'initiatePayment',
  paymentService,
  paymentProduct,
  headers: [
    ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
    ['PSU-IP-Address', '192.168.8.78'],
    ['Accept', 'application/json'],
    ['Content-Type', contentType],
    ['TPP-Redirect-Preferred', 'true'],
    ['TPP-Redirect-URI', 'https://tpp.example/cb/ok'],
  ],
  body: Buffer.from(body),
  receivedAtMs: 0,
});

const product = 'sepa-credit-transfers';
const single = initiation(
  'payments',
  product,
  'application/json',
  JSON.stringify({ ...transfer, debtorAccount }),
);
const bulk = initiation(
  'bulk-payments',
  product,
  'application/json',
  JSON.stringify({ debtorAccount, payments: Array.from({ length: 100 }, () => transfer) }),
);
const xmlProduct = `pain.001-${product}`;
const xml = initiation('payments', xmlProduct, 'application/xml', pain001(1));
const xmlBulk = initiation('bulk-payments', xmlProduct, 'application/xml', pain001(100));
const parts = initiation(
  'periodic-payments',
  xmlProduct,
  'multipart/form-data; boundary=AaB03x',
  periodicParts,
);
const status: JudgedResponse = {
  operation: 'getPaymentStatus',
  paymentService: 'payments',
  paymentProduct: product,
  status: 200,
  headers: [
    ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
    ['Content-Type', 'application/json'],
  ],
  body: Buffer.from('{"transactionStatus":"ACCP"}'),
};

const judge = (request: JudgedRequest) => judgeRequest(contract, inspectRequest(request));

export const contractParts = [
  { name: 'contract: JSON payment', body: () => judge(single) },
  { name: 'contract: bulk of 100', body: () => judge(bulk) },
  { name: 'contract: pain.001', body: () => judge(xml) },
  { name: 'contract: pain.001 in multipart', body: () => judge(parts) },
  { name: 'contract: pain.001, bulk of 100', body: () => judge(xmlBulk) },
  { name: 'contract: status in an answer', body: () => judgeResponse(contract, inspectResponse(status)) },
];
