/** A scripted tour through a gateway in front of two banks: every step is a real call, printed and checked. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { SimulatedBank } from './bank.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** The client that calls the gateway. */
interface TourTpp {
  readonly apiKey: string;
  /** The URL of `receiver`. */
  readonly webhookUrl: string;
  readonly receiver: Pick<WebhookReceiver, 'webhookFor'>;
}

interface TourStep {
  readonly does: string;
  readonly method: string;
  /** The path after `/berlingroup/v1`. */
  readonly path: string;
  readonly expect: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const payment = JSON.stringify({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE40100100103307118608' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
  remittanceInformationUnstructured: 'Ref Number Merchant',
});
const json = { 'Content-Type': 'application/json' };
const payer = { ...json, 'PSU-IP-Address': '192.0.2.1' };
const explicitly = { ...payer, 'TPP-Explicit-Authorisation-Preferred': 'true' };
const transfersPath = '/payments/sepa-credit-transfers';

/**
 * Plays the tour and prints each call.
 *
 * @param gateway origin of the gateway, whose active environment is the first bank's
 * @throws AssertionError if a response is not the expected one
 */
export async function playTour(
  gateway: string,
  banks: readonly SimulatedBank[],
  tpp: TourTpp,
): Promise<void> {
  const startedAtMs = performance.now();
  let stepsDone = 0;
  const play = (step: TourStep) => runStep(gateway, tpp.apiKey, step, `[${++stepsDone}/${stepCount}]`);
  for (const [index, bank] of banks.entries()) {
    console.log(
      `\n━━ ${bank.name}${index === 0 ? ', the active environment' : ', selected by Penstock-Environment'}\n`,
    );
    const environment = index === 0 ? {} : { 'Penstock-Environment': bank.name };
    await tourOf(bank, tpp, (step) => play({ ...step, headers: { ...environment, ...step.headers } }));
  }
  const [active] = banks;
  if (active) await showLostResponse(active, play);
  console.log('\n━━ requests that the gateway refuses do not reach a bank\n');
  const before = banks.map((bank) => bank.requests.length);
  await play({
    does: 'a path that is none of the eight operations',
    method: 'GET',
    path: '/accounts',
    expect: 404,
  });
  await play({
    does: 'a method that this path does not allow',
    method: 'PUT',
    path: transfersPath,
    expect: 405,
  });
  assert.deepEqual(
    banks.map((bank) => bank.requests.length),
    before,
  );

  assert.equal(stepsDone, stepCount);

  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  console.log(`\nTour complete: ${stepsDone} steps in ${seconds} s`);
  for (const { name, requests, payments } of banks) {
    console.log(`   ${name}: ${requests.length} requests received, ${payments.length} payments created`);
  }
}

/** For both banks together. */
const stepCount = 28;

async function tourOf(
  bank: SimulatedBank,
  { webhookUrl, receiver }: TourTpp,
  go: (step: TourStep) => Promise<Record<string, unknown>>,
): Promise<void> {
  const { paymentId } = await go({
    does: 'initiate a payment',
    method: 'POST',
    path: transfersPath,
    expect: 201,
    headers: explicitly,
    body: payment,
  });
  const one = `${transfersPath}/${paymentId}`;
  await go({ does: 'read its status', method: 'GET', path: `${one}/status`, expect: 200 });
  await go({ does: 'read it again immediately', method: 'GET', path: `${one}/status`, expect: 200 });
  await go({ does: 'read the payment itself', method: 'GET', path: one, expect: 200 });
  const { authorisationId } = await go({
    does: 'start its authorisation',
    method: 'POST',
    path: `${one}/authorisations`,
    expect: 201,
    headers: json,
    body: '{}',
  });
  await go({ does: 'list its authorisations', method: 'GET', path: `${one}/authorisations`, expect: 200 });
  await go({
    does: 'read the SCA status',
    method: 'GET',
    expect: 200,
    path: `${one}/authorisations/${authorisationId}`,
  });
  bank.clock.advance(7 * 24 * 3_600_000);
  await go({
    does: 'a week later: read its status again',
    method: 'GET',
    path: `${one}/status`,
    expect: 200,
  });

  const other = await go({
    does: 'initiate another payment, with a URL for webhooks',
    method: 'POST',
    path: transfersPath,
    expect: 201,
    headers: { ...explicitly, 'TPP-Notification-URI': webhookUrl },
    body: payment,
  });
  const cancelled = `${transfersPath}/${other.paymentId}`;
  await go({ does: 'cancel it', method: 'DELETE', path: cancelled, expect: 204 });
  const webhook = await receiver.webhookFor(String(other.paymentId));
  console.log(`   webhook to the TPP, signature valid: ${webhook.body}`);
  await go({ does: 'read its status', method: 'GET', path: `${cancelled}/status`, expect: 200 });
}

/** The critical case for a TPP: the bank has executed the payment, and its response is lost. */
async function showLostResponse(
  bank: SimulatedBank,
  go: (step: TourStep) => Promise<unknown>,
): Promise<void> {
  console.log('\n━━ a repeated request and a lost response: nothing is paid twice\n');
  const { length: before } = bank.payments;
  const initiate = { method: 'POST', path: transfersPath, body: payment } as const;
  const first = { ...explicitly, 'X-Request-ID': randomUUID() };
  await go({ ...initiate, does: 'initiate a payment', headers: first, expect: 201 });
  await go({ ...initiate, does: 'repeat it with the same X-Request-ID', headers: first, expect: 201 });
  bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
  const lost = { ...explicitly, 'X-Request-ID': randomUUID() };
  await go({
    ...initiate,
    does: 'initiate another one; the bank resets the connection',
    headers: lost,
    expect: 504,
  });
  await go({ ...initiate, does: 'repeat it with the same X-Request-ID', headers: lost, expect: 409 });
  assert.equal(bank.payments.length, before + 2);
}

/** Response headers that state what the gateway did. */
const reportedHeaders = [
  'Cache-Status',
  'Idempotent-Replayed',
  'Penstock-Error',
  'ASPSP-Notification-Support',
];

/** Prints the step before it is sent, so that a slow one is visible. @param progress such as `[3/28]` */
async function runStep(
  gateway: string,
  apiKey: string,
  { does, method, path, expect, headers, body }: TourStep,
  progress: string,
): Promise<Record<string, unknown>> {
  console.log(`${progress} ${does}\n   ${method} ${path}`);
  const response = await fetch(`${gateway}/berlingroup/v1${path}`, {
    method,
    headers: { 'X-Request-ID': randomUUID(), 'X-API-Key': apiKey, ...headers },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  const environment = response.headers.get('penstock-environment') ?? 'no bank';
  const reported = reportedHeaders.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  const lines = [`${response.status} from ${environment}`, ...reported, ...(text ? [text] : [])];
  for (const line of lines) console.log(`   ${line}`);
  assert.equal(response.status, expect, does);
  const parsed: Record<string, unknown> = text.startsWith('{') ? JSON.parse(text) : {};
  return parsed;
}
