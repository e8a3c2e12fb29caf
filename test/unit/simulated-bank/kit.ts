/** What the bank's own tests share: orders to place, and a client that goes through no gateway. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { BankOptions, SimulatedBank } from '../../../src/simulated-bank/bank.ts';
import { createBankClock } from '../../../src/simulated-bank/clock.ts';
import { createSimulatedBank } from '../../../src/simulated-bank/server.ts';

/** After the examples of The Berlin Group, NextGenPSD2 XS2A OpenAPI 1.3.11, CC BY 4.0. */
export const jsonOrder = JSON.stringify({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE40100100103307118608' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  remittanceInformationUnstructured: 'Ref Number Merchant',
});

/** After the examples of The Berlin Group, NextGenPSD2 XS2A OpenAPI 1.3.11, CC BY 4.0; shortened. */
export const xmlOrder = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.03">
  <CstmrCdtTrfInitn><GrpHdr><MsgId>MIPI-123456789RI-123456789</MsgId></GrpHdr></CstmrCdtTrfInitn>
</Document>
`;

export const multipartOrder = [
  '--AaaBbbCcc',
  'Content-Disposition: form-data; name="xml_sct"',
  'Content-Type: application/xml',
  '',
  xmlOrder,
  '--AaaBbbCcc',
  'Content-Disposition: form-data; name="json_standingorderType"',
  'Content-Type: application/json',
  '',
  '{"startDate":"2026-12-01","frequency":"Monthly","executionRule":"preceding","dayOfExecution":"1"}',
  '--AaaBbbCcc--',
  '',
].join('\r\n');

export const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';

/** The headers of a complete initiation in JSON. */
export const initiation = {
  'X-Request-ID': requestId,
  'PSU-IP-Address': '192.168.8.78',
  'Content-Type': 'application/json',
};

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into bodies whose shape they assert
  readonly json: any;
}

interface Ask {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** A bank with a clock that stands still at noon, started; stopped when the test ends. */
export async function startedBank(t: TestContext, options: BankOptions = {}): Promise<SimulatedBank> {
  const noon = Date.parse('2026-01-01T12:00:00Z');
  const bank = createSimulatedBank({ clock: createBankClock(() => noon), ...options });
  await bank.start();
  t.after(bank.stop);
  return bank;
}

/** Sends one request on a connection of its own. `path` follows the bank's origin. */
export function ask(bank: SimulatedBank, method: string, path: string, { headers = {}, body }: Ask = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const all = { 'X-Request-ID': requestId, ...headers };
  const sent = httpRequest(new URL(bank.baseUrl).origin + path, { method, headers: all, agent: false });
  sent.on('error', reject).on('response', (response) => {
    buffer(response).then((bytes) => {
      const text = bytes.toString('utf8');
      const json = /json/.test(response.headers['content-type'] ?? '') ? JSON.parse(text) : undefined;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: bytes, text, json });
    }, reject);
  });
  sent.end(body);
  return promise;
}

/** Initiates a payment in JSON. */
export const pay = (bank: SimulatedBank, headers: Readonly<Record<string, string>> = {}) =>
  ask(bank, 'POST', '/berlingroup/v1/payments/sepa-credit-transfers', {
    headers: { ...initiation, ...headers },
    body: jsonOrder,
  });

/** The path of a payment initiated by `pay`. */
export const pathOf = (paymentId: string) => `/berlingroup/v1/payments/sepa-credit-transfers/${paymentId}`;
