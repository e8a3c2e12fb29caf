import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JudgedResponse } from '../../../src/contract/judge-response.ts';
import {
  answer,
  answerVerdictOf,
  bothContracts,
  bulkElement,
  contract6,
  contract11,
  multipart,
  pain001,
  partsOf,
  periodic,
  single,
  standingOrder,
  transferXml,
} from '../../kit/judged.ts';

const links = {
  scaRedirect: { href: 'https://bank.example/sca?id=1' },
  self: { href: '/psd2/v1/payments/1' },
};
const initiated = { transactionStatus: 'RCVD', paymentId: '1234', _links: links };
const started = { scaStatus: 'received', authorisationId: '1', _links: links };
const xml = (content: string, message = 'pain.002.001.03', child = 'CstmrPmtStsRpt') =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}"><${child}>${content}</${child}></Document>`;
const inXml = (content: string, operation: 'getPaymentStatus' | 'getPayment' = 'getPaymentStatus') =>
  answer(operation, 200, content, {
    product: 'pain.001-sepa-credit-transfers',
    headers: { 'Content-Type': 'application/xml' },
  });

const inParts = (
  body: string = multipart(),
  changes: { readonly product?: string; readonly type?: string } = {},
) =>
  answer('getPeriodicPayment', 200, body, {
    product: changes.product ?? 'pain.001-sepa-credit-transfers',
    headers: { 'Content-Type': changes.type ?? 'multipart/form-data; boundary=AaB03x' },
  });

/** Answers that clients of both versions understand. */
const fine: readonly JudgedResponse[] = [
  answer('initiatePayment', 201, initiated),
  answer('initiatePayment', 201, initiated, {
    headers: { 'Content-Type': 'application/json;charset=UTF-8' },
  }),
  answer('getPayment', 200, single({ transactionStatus: 'ACSP' })),
  answer('getPeriodicPayment', 200, periodic({ transactionStatus: 'ACCP' })),
  answer('getPaymentStatus', 200, { transactionStatus: 'ACTC', fundsAvailable: true, psuMessage: 'Wait' }),
  inXml(xml('<OrgnlGrpInfAndSts><GrpSts>ACCP</GrpSts></OrgnlGrpInfAndSts>')),
  inXml(pain001(), 'getPayment'),
  inParts(),
  inParts(pain001(), { type: 'application/xml' }),
  answer('cancelPayment', 204, undefined),
  answer('cancelPayment', 202, { transactionStatus: 'ACTC', _links: links }),
  answer('startAuthorisation', 201, started),
  answer('updatePsuData', 200, { scaStatus: 'finalised' }),
  answer('updatePsuData', 200, {
    scaStatus: 'psuAuthenticated',
    scaMethods: [{ authenticationType: 'SMS_OTP', authenticationMethodId: '901' }],
    _links: { selectAuthenticationMethod: links.self },
  }),
  answer('updatePsuData', 200, {
    scaStatus: 'scaMethodSelected',
    chosenScaMethod: { authenticationType: 'SMS_OTP', authenticationMethodId: '901' },
    challengeData: { otpMaxLength: 6, otpFormat: 'integer' },
    _links: { authoriseTransaction: links.self },
  }),
  answer('updatePsuData', 401, { tppMessages: [{ category: 'ERROR', code: 'PSU_CREDENTIALS_INVALID' }] }),
  answer('getBulkPayment', 200, {
    batchBookingPreferred: false,
    debtorAccount: { iban: 'DE40100100103307118608' },
    payments: [bulkElement()],
    transactionStatus: 'ACSP',
  }),
  answer('updatePayment', 200, { anything: 'the standard does not define it' }),
  answer('listAuthorisations', 200, { authorisationIds: ['123auth456'] }),
  answer('listAuthorisations', 200, { authorisationIds: [] }),
  answer('getAuthorisation', 200, { scaStatus: 'finalised', trustedBeneficiaryFlag: false }),
  ...[400, 401, 403, 404, 405, 406, 408, 409, 415, 429, 500, 503].map((status) =>
    answer('getPayment', status, { tppMessages: [{ category: 'ERROR', code: 'FORMAT_ERROR' }] }),
  ),
  answer(
    'getPayment',
    400,
    { type: 'https://bank.example/e', code: 'FORMAT_ERROR' },
    {
      headers: { 'Content-Type': 'application/problem+json' },
    },
  ),
  answer('getPayment', 503, undefined),
];

/** Answers that a client misreads, and why. */
const harmful: readonly (readonly [name: string, judged: JudgedResponse, expected: string])[] = [
  ['an unexpected success', answer('initiatePayment', 202, initiated), 'status status/2xx'],
  ['an unexpected 204', answer('getPaymentStatus', 204, undefined), 'status status/2xx'],
  ['a redirect by HTTP', answer('initiatePayment', 303, undefined), 'status status/3xx'],
  ['no body', answer('initiatePayment', 201, undefined), 'no-body body'],
  [
    'HTML',
    answer('getPaymentStatus', 200, '<html></html>', { headers: { 'Content-Type': 'text/html' } }),
    'content-type headers/Content-Type',
  ],
  [
    'XML for a JSON product',
    { ...inXml(xml('')), paymentProduct: 'sepa-credit-transfers' },
    'content-type headers/Content-Type',
  ],
  [
    'no type',
    answer(
      'getPaymentStatus',
      200,
      { transactionStatus: 'RCVD' },
      { headers: { 'Content-Type': undefined } },
    ),
    'content-type headers/Content-Type',
  ],
  ['broken JSON', answer('getPaymentStatus', 200, '{"transactionStatus":'), 'json body'],
  ['a list', answer('listAuthorisations', 200, '["123auth456"]'), 'type body'],
  [
    'a key twice',
    answer('getPaymentStatus', 200, '{"transactionStatus":"RCVD","transactionStatus":"RJCT"}'),
    'duplicate-key body',
  ],
  ['no status', answer('getPaymentStatus', 200, { fundsAvailable: true }), 'required body/transactionStatus'],
  [
    'an unknown status',
    answer('getPaymentStatus', 200, { transactionStatus: 'DONE' }),
    'enum body/transactionStatus',
  ],
  [
    'a number as the status',
    answer('getPaymentStatus', 200, { transactionStatus: 1 }),
    'type body/transactionStatus',
  ],
  [
    'no payment id',
    answer('initiatePayment', 201, { ...initiated, paymentId: undefined }),
    'required body/paymentId',
  ],
  [
    'a number as the payment id',
    answer('initiatePayment', 201, { ...initiated, paymentId: 1234 }),
    'type body/paymentId',
  ],
  ['no links', answer('initiatePayment', 201, { ...initiated, _links: undefined }), 'required body/_links'],
  [
    'a link as a text',
    answer('initiatePayment', 201, { ...initiated, _links: { self: '/v1/payments/1' } }),
    'type body/_links/self',
  ],
  [
    'a link without href',
    answer('initiatePayment', 201, { ...initiated, _links: { scaRedirect: { url: 'https://x' } } }),
    'required body/_links/scaRedirect/href',
  ],
  [
    'a list of links',
    answer('initiatePayment', 201, { ...initiated, _links: [{ href: '/v1' }] }),
    'type body/_links',
  ],
  [
    'a link with a space',
    answer('initiatePayment', 201, {
      ...initiated,
      _links: { scaRedirect: { href: 'https://bank.example/a b' } },
    }),
    'pattern body/_links/scaRedirect/href',
  ],
  [
    'an unknown link as a text',
    answer('initiatePayment', 201, { ...initiated, _links: { canary: '/v1' } }),
    'type body/_links/*',
  ],
  [
    'an unknown approach',
    answer('initiatePayment', 201, initiated, { headers: { 'ASPSP-SCA-Approach': 'OAUTH' } }),
    'pattern headers/ASPSP-SCA-Approach',
  ],
  [
    'a location with a space',
    answer('initiatePayment', 201, initiated, { headers: { Location: '/v1/payments/1 2' } }),
    'pattern headers/Location',
  ],
  [
    'no scaStatus',
    answer('startAuthorisation', 201, { ...started, scaStatus: undefined }),
    'required body/scaStatus',
  ],
  ['an unknown scaStatus', answer('getAuthorisation', 200, { scaStatus: 'done' }), 'enum body/scaStatus'],
  [
    'no authorisation id',
    answer('startAuthorisation', 201, { ...started, authorisationId: undefined }),
    'required body/authorisationId',
  ],
  ['no scaStatus after a step', answer('updatePsuData', 200, { _links: links }), 'required body/scaStatus'],
  [
    'a method without its id after a step',
    answer('updatePsuData', 200, {
      scaStatus: 'psuAuthenticated',
      scaMethods: [{ authenticationType: 'SMS_OTP' }],
    }),
    'required body/scaMethods/#/authenticationMethodId',
  ],
  [
    'an unknown format of the TAN',
    answer('updatePsuData', 200, { scaStatus: 'scaMethodSelected', challengeData: { otpFormat: 'digits' } }),
    'enum body/challengeData/otpFormat',
  ],
  [
    'a bulk payment without payments',
    answer('getBulkPayment', 200, { debtorAccount: { iban: 'DE40100100103307118608' } }),
    'required body/payments',
  ],
  [
    'a bulk payment with one payment in place of a list',
    answer('getBulkPayment', 200, { debtorAccount: { iban: 'DE40100100103307118608' }, payments: single() }),
    'type body/payments',
  ],
  [
    'links instead of ids',
    answer('listAuthorisations', 200, { authorisationIds: [{ href: '/v1' }] }),
    'type body/authorisationIds/#',
  ],
  [
    'ids under the old name',
    answer('listAuthorisations', 200, { cancellationIds: ['1'] }),
    'required body/authorisationIds',
  ],
  [
    'a method without its id',
    answer('startAuthorisation', 201, { ...started, scaMethods: [{ authenticationType: 'SMS_OTP' }] }),
    'required body/scaMethods/#/authenticationMethodId',
  ],
  [
    'a challenge as a text',
    answer('startAuthorisation', 201, { ...started, challengeData: { data: '123' } }),
    'type body/challengeData/data',
  ],
  [
    'no amount',
    answer('getPayment', 200, single({ instructedAmount: undefined })),
    'required body/instructedAmount',
  ],
  [
    'a number as an amount',
    answer('getPayment', 200, single({ instructedAmount: { currency: 'EUR', amount: 1 } })),
    'type body/instructedAmount/amount',
  ],
  [
    'no beginning',
    answer('getPeriodicPayment', 200, periodic({ startDate: undefined })),
    'required body/startDate',
  ],
  [
    'a cancellation without a status',
    answer('cancelPayment', 202, { _links: links }),
    'required body/transactionStatus',
  ],
  ['broken XML', inXml('<Document>'), 'xml xml'],
  ['a DOCTYPE', inXml(`<!DOCTYPE Document>${xml('')}`), 'doctype xml'],
  ['pain.002 for a payment', inXml(xml(''), 'getPayment'), 'message-type xml'],
  ['pain.001 for a status', inXml(xml('', 'pain.001.001.03', 'CstmrCdtTrfInitn')), 'message-type xml'],
  [
    'two transfers of one payment',
    inXml(pain001(transferXml().repeat(2), 2), 'getPayment'),
    'several-transfers xml/CdtTrfTxInf',
  ],
  [
    'pain.001 without its header',
    inXml(pain001().replace(/<GrpHdr>.*<\/GrpHdr>/s, ''), 'getPayment'),
    'required xml/CstmrCdtTrfInitn/GrpHdr',
  ],
  [
    'pain.001 of a standing order with a wrong IBAN',
    inParts(pain001(transferXml(undefined, 'DE03100100109307118603')), { type: 'application/xml' }),
    'iban xml/IBAN',
  ],
  ['parts without a boundary', inParts(undefined, { type: 'multipart/form-data' }), 'boundary body'],
  [
    'parts of another boundary',
    inParts(undefined, { type: 'multipart/form-data; boundary=x' }),
    'boundary body',
  ],
  [
    'parts for a JSON product',
    inParts(undefined, { product: 'sepa-credit-transfers' }),
    'content-type headers/Content-Type',
  ],
  [
    'parts of another type',
    inParts(undefined, { type: 'multipart/mixed; boundary=AaB03x' }),
    'content-type headers/Content-Type',
  ],
  [
    'parts for a single payment',
    { ...inParts(), operation: 'getPayment', paymentService: 'payments' },
    'content-type headers/Content-Type',
  ],
  ['no part with pain.001', inParts(multipart(partsOf().slice(1))), 'required parts/xml_sct'],
  ['no part with JSON', inParts(multipart(partsOf().slice(0, 1))), 'required parts/json_standingorderType'],
  ['a part twice', inParts(multipart([...partsOf(), ...partsOf()])), 'repeated parts/xml_sct'],
  [
    'a part with broken JSON',
    inParts(multipart([partsOf()[0], ['json_standingorderType', 'application/json', '{']])),
    'json parts/json_standingorderType',
  ],
  [
    'a part without a frequency',
    inParts(multipart(partsOf(standingOrder({ frequency: undefined })))),
    'required parts/json_standingorderType/frequency',
  ],
  [
    'a part with an unknown frequency',
    inParts(multipart(partsOf(standingOrder({ frequency: 'Often' })))),
    'enum parts/json_standingorderType/frequency',
  ],
  [
    'a part with a DOCTYPE',
    inParts(multipart(partsOf(undefined, '<!DOCTYPE a><a/>'))),
    'doctype parts/xml_sct',
  ],
  [
    'a part with a wrong IBAN',
    inParts(multipart(partsOf(undefined, pain001(transferXml(undefined, 'DE03100100109307118603'))))),
    'iban parts/xml_sct/IBAN',
  ],
  [
    'a part without a PmtMtd',
    inParts(multipart(partsOf(undefined, pain001().replace('<PmtMtd>TRF</PmtMtd>', '')))),
    'required parts/xml_sct/PmtInf/PmtMtd',
  ],
];

/** What banks do, and what clients must expect. */
const usual: readonly (readonly [name: string, judged: JudgedResponse, expected: string])[] = [
  [
    'an unknown field',
    answer('getPaymentStatus', 200, { transactionStatus: 'RCVD', canary: 1 }),
    'unknown body/* none',
  ],
  [
    'scaStatus with a status',
    answer('getPaymentStatus', 200, { transactionStatus: 'ACCP', scaStatus: 'received' }),
    'not-in-standard body/scaStatus none',
  ],
  [
    'tppMessage',
    answer('getPaymentStatus', 200, { transactionStatus: 'RJCT', tppMessage: [] }),
    'singular-name body/tppMessage client-may-fail',
  ],
  ['501', answer('getPayment', 501, undefined), 'status status/5xx none'],
  [
    'an error in HTML',
    answer('getPayment', 500, '<html>', { headers: { 'Content-Type': 'text/html' } }),
    'content-type error none',
  ],
  [
    'a problem without a type',
    answer(
      'cancelPayment',
      400,
      { code: 'RESOURCE_BLOCKED' },
      { headers: { 'Content-Type': 'application/problem+json' } },
    ),
    'required error/type none',
  ],
  [
    'broken JSON of an error that has no body in the files',
    answer('getPayment', 500, '{'),
    'json error none',
  ],
  [
    'no X-Request-ID',
    answer(
      'getPaymentStatus',
      200,
      { transactionStatus: 'RCVD' },
      { headers: { 'X-Request-ID': undefined } },
    ),
    'required headers/X-Request-ID none',
  ],
  [
    'a flag as a text',
    answer('getAuthorisation', 200, { scaStatus: 'finalised', trustedBeneficiaryFlag: 'true' }),
    'text-for-boolean body/trustedBeneficiaryFlag client-may-fail',
  ],
  [
    'an unknown part',
    inParts(multipart([...partsOf(), ['canary', 'text/plain', 'x']])),
    'unknown parts/* none',
  ],
  [
    'an unknown field in a part',
    inParts(multipart(partsOf(standingOrder({ canary: 1 })))),
    'unknown parts/json_standingorderType/* none',
  ],
  [
    'pain.001 without DbtrAgt',
    inXml(pain001().replace(/<DbtrAgt>.*<\/DbtrAgt>/, ''), 'getPayment'),
    'required xml/PmtInf/DbtrAgt client-may-fail',
  ],
  ['ACCT in pain.002', inXml(xml('<GrpSts>ACCT</GrpSts>')), 'enum xml/GrpSts client-may-fail'],
];

/** What some banks do, and most clients do not expect. */
const notable: readonly (readonly [name: string, judged: JudgedResponse, expected: string])[] = [
  ['200 for an initiation', answer('initiatePayment', 200, initiated), 'status status/2xx'],
  ['200 for a cancellation', answer('cancelPayment', 200, undefined), 'status status/2xx'],
  [
    'a link with another name',
    answer('initiatePayment', 201, {
      ...initiated,
      _links: { sca_redirect: { href: 'https://bank.example' } },
    }),
    'unknown body/_links/*',
  ],
  ['no link', answer('initiatePayment', 201, { ...initiated, _links: {} }), 'link body/_links'],
];

describe('the contract of an answer', () => {
  test('has nothing against answers that both versions have', () => {
    for (const contract of bothContracts)
      for (const judged of fine)
        assert.deepEqual(answerVerdictOf(contract, judged), [], `${judged.operation} ${judged.status}`);
  });

  for (const [name, judged, expected] of harmful) {
    test(`reports ${name} as harmful`, () => {
      for (const contract of bothContracts) {
        const found = answerVerdictOf(contract, judged);
        assert.ok(
          found.includes(`harmful ${expected} client-may-fail`),
          `${contract.version}: ${found.join(', ')}`,
        );
      }
    });
  }

  for (const [name, judged, expected] of notable) {
    test(`reports ${name} as notable`, () => {
      for (const contract of bothContracts)
        assert.deepEqual(answerVerdictOf(contract, judged), [`notable ${expected} client-may-fail`]);
    });
  }

  for (const [name, judged, expected] of usual) {
    test(`reports ${name} as usual`, () => {
      for (const contract of bothContracts)
        assert.deepEqual(answerVerdictOf(contract, judged), [`usual ${expected}`]);
    });
  }

  test('reports months in a part, which 1.3.6 does not return', () => {
    const order = standingOrder({ frequency: 'MonthlyVariable', monthsOfExecution: ['1'] });
    const judged = inParts(multipart(partsOf(order)));
    assert.deepEqual(answerVerdictOf(contract11, judged), []);
    assert.deepEqual(answerVerdictOf(contract6, judged), [
      'notable not-in-version parts/json_standingorderType/monthsOfExecution not-returned',
    ]);
  });

  test('says that an encoded or very large part is not judged', () => {
    const large = inParts(multipart(partsOf(undefined, `${pain001()}${' '.repeat(1_048_576)}`)));
    assert.deepEqual(answerVerdictOf(contract6, large), ['notable too-large parts/xml_sct not-judged']);
  });

  test('says what it cannot judge', () => {
    const encoded = answer('getPaymentStatus', 200, 'xyz', { headers: { 'Content-Encoding': 'gzip' } });
    assert.deepEqual(answerVerdictOf(contract6, encoded), [
      'notable content-encoding headers/Content-Encoding not-judged',
    ]);
  });
});
