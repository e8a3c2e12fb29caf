/** The requests and response bodies of the measurements. All contenders use the same bytes. */

import type { BenchRequest } from './measure/load.ts';

const payments = '/berlingroup/v1/payments/sepa-credit-transfers';
const standingOrders = '/berlingroup/v1/periodic-payments/sepa-credit-transfers';

/** API key of the client that sends the load. */
export const apiKey = 'key-of-the-bench';

/** With the optional fields that both versions of the standard have. */
const payment = {
  endToEndIdentification: 'E2E-2027-02-15-000123',
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE40100100103307118608' },
  creditorName: 'Merchant123 Trading and Logistics GmbH',
  creditorAccount: { iban: 'DE02100100109307118603' },
  creditorAgent: 'ABCDDEFFXXX',
  remittanceInformationUnstructured: 'Invoice 2027-4711 of 1 February, customer 123456, order 98765',
};
const creditorAddress = {
  streetName: 'Lange Straße am Alten Güterbahnhof',
  buildingNumber: '123 a',
  townName: 'Frankfurt am Main',
  postCode: '60311',
  country: 'DE',
};

/** The body of the response to every GET: a payment with a final status, 600 bytes. */
export const cachedBody = padded({ transactionStatus: 'ACCC', ...payment }, 600);

/** The body of the response to a POST. @param id a payment id, or the variable that nginx replaces with one */
export const initiationResponse = (id: string): string =>
  JSON.stringify({
    transactionStatus: 'RCVD',
    paymentId: id,
    _links: {
      scaRedirect: { href: `https://bank.example/confirm/${id}` },
      self: { href: `${payments}/${id}` },
      status: { href: `${payments}/${id}/status` },
      scaStatus: { href: `${payments}/${id}/authorisations/123auth456` },
    },
  });

export const locationOf = (id: string): string => `${payments}/${id}`;

const headers = {
  'X-API-Key': apiKey,
  'X-Request-ID': '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  Accept: 'application/json',
  'PSU-IP-Address': '192.168.8.78',
};

/** A payment initiation with a body of 1024 bytes. */
export const initiation: BenchRequest = {
  method: 'POST',
  path: payments,
  headers: {
    ...headers,
    'Content-Type': 'application/json',
    'TPP-Redirect-Preferred': 'true',
    'TPP-Redirect-URI': 'https://tpp.example/cb/ok',
  },
  body: padded({ ...payment, creditorAddress }, 1024),
};

/** An initiation of a standing order, whose status is not final: with this status, a payment is settled, and a standing order goes on. */
export const standingOrderInitiation: BenchRequest = { ...initiation, path: standingOrders };

/** A GET of a payment. The gateway never caches the response. */
export const paymentRequest = (id: string): BenchRequest => ({
  method: 'GET',
  path: locationOf(id),
  headers,
});

/** A GET of a payment status. The gateway caches the response. */
export const statusRequest = (id: string): BenchRequest => ({
  method: 'GET',
  path: `${locationOf(id)}/status`,
  headers,
});

/** A GET of the status of a standing order. The gateway caches the response for a second or more. */
export const standingOrderStatusRequest = (id: string): BenchRequest => ({
  method: 'GET',
  path: `${standingOrders}/${id}/status`,
  headers,
});

/** Serializes `value` to JSON of exactly `bytes` bytes; spaces fill the rest. */
function padded(value: object, bytes: number): string {
  const text = JSON.stringify(value, null, 2);
  return text + ' '.repeat(bytes - Buffer.byteLength(text));
}
