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
const pain001 = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.03"><CstmrCdtTrfInitn>
<GrpHdr><MsgId>M-1</MsgId><NbOfTxs>1</NbOfTxs></GrpHdr><PmtInf><ReqdExctnDt>2027-02-15</ReqdExctnDt>
<DbtrAcct><Id><IBAN>DE40100100103307118608</IBAN></Id></DbtrAcct><CdtTrfTxInf><Amt><InstdAmt Ccy="EUR">123.50</InstdAmt></Amt>
<CdtrAcct><Id><IBAN>DE02100100109307118603</IBAN></Id></CdtrAcct></CdtTrfTxInf></PmtInf></CstmrCdtTrfInitn></Document>`;

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
const xml = initiation('payments', `pain.001-${product}`, 'application/xml', pain001);
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
  { name: 'contract: status in an answer', body: () => judgeResponse(contract, inspectResponse(status)) },
];
