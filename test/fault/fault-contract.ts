/** What every request that meets a fault of the bank must fulfil, whatever the fault. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Fault, momentOf } from '../../src/simulated-bank/faults.ts';
import { type Call, call, type Method, type Reply } from '../kit/call.ts';
import { type GatewayUnderTest, type Sections, startGatewayWithBank } from '../kit/gateway.ts';
import { type NewCall, newCall, transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';

/** The error that a TPP gets when the bank fails. */
export interface ExpectedFailure {
  readonly status: number;
  readonly code: string;
  /** Error type of RFC 9209. */
  readonly proxyError: string;
}

/** A gateway, and a bank with one payment. */
export interface FaultTestSetup {
  readonly bank: SimulatedBank;
  readonly gateway: GatewayUnderTest;
  readonly paymentPath: string;
}

/** A read, an initiation and a cancellation. */
export const methods: readonly Method[] = ['GET', 'POST', 'DELETE'];

/** Longer than every deadline in `shortDeadlines`, on a busy machine as well. */
const maxWaitMs = 20_000;

export async function startWithPayment(t: TestContext, sections: Sections = {}): Promise<FaultTestSetup> {
  const { bank, gateway } = await startGatewayWithBank(t, sections);
  let text = '';
  // Tests that run at the same time start their gateways in this process, which may be overloaded until they have.
  await until(10_000, 'a payment is accepted', async () => {
    const reply = await call(gateway.url, newCall('POST', transfersPath));
    text = reply.text;
    return reply.status === 201;
  });
  const { paymentId }: { paymentId: string } = JSON.parse(text);
  bank.setStatus(paymentId, 'ACTC'); // the response to a cancellation then has a body
  return { bank, gateway, paymentPath: `${transfersPath}/${paymentId}` };
}

/** A call that succeeds without the fault. */
export const callOn = ({ paymentPath }: FaultTestSetup, method: Method): NewCall =>
  newCall(method, method === 'POST' ? transfersPath : paymentPath);

/** Defines one test per method. */
export function testEveryMethodFails(
  fault: Fault,
  failure: ExpectedFailure,
  sections?: Sections,
  failing = methods,
): void {
  for (const method of failing) {
    const sent = timesSent(fault, method);
    const times = sent === 1 ? 'once' : 'twice';
    test(`a ${method} fails with ${failure.status} ${failure.code}, reaches the bank ${times}, and the next call succeeds: ${nameOf(fault)}`, async (t) => {
      const setup = await startWithPayment(t, sections);
      const { bank, gateway } = setup;
      const before = { requests: bank.requests.length, payments: bank.payments.length };
      bank.injectFault(fault);

      const request = callOn(setup, method);
      const reply = await within(maxWaitMs, 'the response', call(gateway.url, request));
      assertFailure(gateway, request, reply, failure);

      bank.clearFaults();
      const next = await within(maxWaitMs, 'the next response', call(gateway.url, callOn(setup, 'GET')));
      assert.equal(next.status, 200);
      assert.equal(bank.requests.length - before.requests, sent + 1, 'the bank received the next call');
      const paid = method === 'POST' && momentOf(fault) === 'after-effect';
      assert.equal(bank.payments.length - before.payments, paid ? 1 : 0);
    });
  }
}

/**
 * A read is retried once if a pooled connection breaks before the first byte of a response: the bank may have closed the
 * connection just before. A write is never retried.
 */
const timesSent = ({ name }: Fault, method: Method): number =>
  method === 'GET' && (name === 'reset' || name === 'close-before-answering') ? 2 : 1;

/** The response and a single log line report the failure. */
export function assertFailure(
  gateway: GatewayUnderTest,
  request: Call,
  reply: Reply,
  failure: ExpectedFailure,
): void {
  assert.equal(reply.header('penstock-error'), failure.code);
  assert.equal(reply.status, failure.status);
  assert.match(reply.header('proxy-status') ?? '', new RegExp(`^penstock; error=${failure.proxyError};`));
  assert.equal(reply.header('penstock-environment'), 'sandbox');
  assert.equal(reply.header('x-request-id'), request.requestId);
  assert.equal(reply.header('cache-control'), 'no-store');
  const [{ code, text }]: [Record<string, string>] = JSON.parse(reply.text).tppMessages;
  assert.equal(code, 'SERVICE_UNAVAILABLE');
  assert.match(text ?? '', adviceFor(request, failure));

  const { level, message, error, status, proxyError, environment } = logLineOf(gateway, request);
  assert.deepEqual(
    { level, message, error, status, proxyError, environment },
    {
      level: 'warn',
      message: 'request failed',
      error: failure.code,
      status: failure.status,
      proxyError: failure.proxyError,
      environment: 'sandbox',
    },
  );
}

function adviceFor({ method, path }: Call, { code }: ExpectedFailure): RegExp {
  if (code === 'UPSTREAM_UNREACHED' || code === 'QUEUE_TIMEOUT')
    return /nothing was sent\. Try again[^:]*\.$/;
  if (method === 'GET') return /^[A-Z_]+: [^:]*\. A read changes nothing at the bank: send it again\.$/;
  if (method === 'POST' && !path.endsWith('authorisations'))
    return /The bank may have executed the request: do not initiate again; repeat the request with the same X-Request-ID to get its outcome\.$/;
  return /The bank may have executed the request: do not initiate again; read the status of the payment, or repeat the request with the same X-Request-ID\.$/;
}

/** The only log line about this request, except that it is in doubt. */
export function logLineOf({ logLines }: GatewayUnderTest, { requestId }: Call): Record<string, unknown> {
  const lines = logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.requestId === requestId && line.message !== 'a payment is in doubt');
  assert.equal(lines.length, 1);
  return lines[0];
}

/** Name and parameters of a fault. */
function nameOf({ name, ...parameters }: Fault): string {
  const values = Object.values(parameters).map((value) => JSON.stringify(value).slice(0, 24));
  return [name, ...values].join(' ');
}
