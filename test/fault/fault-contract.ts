/** What is promised of every call that a fault strikes, whatever the fault. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Fault, momentOf } from '../../src/simulated-bank/faults.ts';
import { type Call, call, type Method, type Reply } from '../kit/call.ts';
import { type GatewayUnderTest, type Sections, startLine } from '../kit/gateway.ts';
import { type NewCall, newCall, transfers } from '../kit/request.ts';
import { within } from '../kit/within.ts';

/** How the gateway tells a TPP that the bank failed. */
export interface ExpectedFailure {
  readonly status: number;
  readonly code: string;
  /** Error type of RFC 9209. */
  readonly proxyError: string;
}

/** A gateway in front of a bank that holds one payment. */
export interface FaultTestSetup {
  readonly bank: SimulatedBank;
  readonly gateway: GatewayUnderTest;
  readonly paymentPath: string;
}

/** A read, an initiation and a cancellation: each must survive every fault. */
export const methods: readonly Method[] = ['GET', 'POST', 'DELETE'];

/** Deadlines of a few hundred milliseconds, for faults that are only noticed when one passes. */
export const shortDeadlines: Sections = {
  deadlines: { connect: '200ms', status: '500ms', read: '500ms', write: '600ms' },
  shaping: { maxWait: { write: '400ms', read: '400ms', status: '400ms' } },
  idempotency: { wait: '100ms' },
};

/** Longer than every deadline in `short`, with room for a busy machine. Milliseconds. */
const patienceMs = 4_000;

export async function startWithPayment(t: TestContext, sections: Sections = {}): Promise<FaultTestSetup> {
  const { bank, gateway } = await startLine(t, sections);
  const { status, text } = await call(gateway.url, newCall('POST', transfers));
  assert.equal(status, 201);
  const { paymentId }: { paymentId: string } = JSON.parse(text);
  bank.setStatus(paymentId, 'ACTC'); // from here on a cancellation is answered with a body, too
  return { bank, gateway, paymentPath: `${transfers}/${paymentId}` };
}

/** A call of that method which the bank would gladly answer. */
export const callOn = ({ paymentPath }: FaultTestSetup, method: Method): NewCall =>
  newCall(method, method === 'POST' ? transfers : paymentPath);

/** The whole promise, for a read, an initiation and a cancellation. */
export function testEveryMethodFails(fault: Fault, failure: ExpectedFailure, sections?: Sections): void {
  for (const method of methods) {
    const sent = timesSent(fault, method);
    const howOften = sent === 1 ? 'once' : 'twice';
    test(`${nameOf(fault)}: a ${method} is answered ${failure.status} ${failure.code}, reaches the bank ${howOften}, and the next call works`, async (t) => {
      const line = await startWithPayment(t, sections);
      const { bank, gateway } = line;
      const earlier = { requests: bank.requests.length, payments: bank.payments.length };
      bank.injectFault(fault);

      const request = callOn(line, method);
      const reply = await within(patienceMs, 'an answer', call(gateway.url, request));
      assertFailure(gateway, request, reply, failure);

      bank.clearFaults();
      const next = await within(patienceMs, 'the next answer', call(gateway.url, callOn(line, 'GET')));
      assert.equal(next.status, 200);
      assert.equal(bank.requests.length - earlier.requests, sent + 1, 'and one for the next call');
      const paid = method === 'POST' && momentOf(fault) === 'after-effect';
      assert.equal(bank.payments.length - earlier.payments, paid ? 1 : 0);
    });
  }
}

/**
 * A read is sent once more on another connection if a kept one breaks without a byte of an answer: the bank may have
 * closed it before. A write never is.
 */
const timesSent = ({ name }: Fault, method: Method): number =>
  method === 'GET' && (name === 'reset' || name === 'close-before-answering') ? 2 : 1;

/** The answer says what failed in the standard's format, and one line of the log says the same. */
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

/** Reading moves no money: only after a write that the bank may have seen, paying again would be paying twice. */
function adviceFor({ method }: Call, { code }: ExpectedFailure): RegExp {
  if (code === 'UPSTREAM_UNREACHED' || code === 'QUEUE_TIMEOUT')
    return /nothing was sent\. Try again[^:]*\.$/;
  if (method === 'GET') return /^[^:]*\. Reading changed nothing at the bank: ask again\.$/;
  return /The bank may have acted on the request: do not initiate again; read the status of the payment, or ask with the same X-Request-ID\.$/;
}

/** The one line that the log has about this request, beside a doubt. */
export function logLineOf({ logLines }: GatewayUnderTest, { requestId }: Call): Record<string, unknown> {
  const lines = logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.requestId === requestId && line.message !== 'a payment is in doubt');
  assert.equal(lines.length, 1);
  return lines[0];
}

/** Name and parameters, as far as they are not the defaults. */
function nameOf({ name, ...parameters }: Fault): string {
  const values = Object.values(parameters).map((value) => JSON.stringify(value).slice(0, 24));
  return [name, ...values].join(' ');
}
