/** A bank that allows less than was configured teaches its rate by 429, and payments go first meanwhile. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call } from '../kit/call.ts';
import { callOf } from '../kit/circuits.ts';
import { startLine } from '../kit/gateway.ts';
import { exchange, failuresIn, startLoad } from '../kit/load.ts';
import { initiation } from '../kit/request.ts';

const learningMs = 30_000;
const measuredMs = 15_000;
const fault = { name: 'rate-limit', perSecond: 5, burst: 5, retryAfterSeconds: 3 } as const;

test('a bank that allows 5 calls a second is sent between 4 and 5 within half a minute, payments first', async (t) => {
  const { bank, gateway } = await startLine(t, { shaping: { rate: '50/s', burst: 50 } });
  bank.fail(fault);
  const forMs = learningMs + measuredMs;
  const begun = performance.now();
  const [payments, reads] = await Promise.all([
    startLoad({ perSecond: 1, forMs }, () => exchange(initiation, (one) => call(gateway.url, one))).ended,
    startLoad({ perSecond: 15, forMs }, () => exchange(callOf.read, (one) => call(gateway.url, one))).ended,
  ]);

  const settled = bank.requests.filter(({ arrivedAtMs }) => arrivedAtMs > begun + learningMs);
  const rejected = settled.filter((one) => one.fault === 'rate-limit').length;
  const perSecond = (settled.length - rejected) / (measuredMs / 1_000);
  const late = payments.filter(({ sentAtMs }) => sentAtMs > begun + learningMs);
  const slowest = Math.max(...late.map(({ tookMs }) => tookMs));
  t.diagnostic(
    `${perSecond.toFixed(2)} calls a second are answered, ${rejected} met a 429 in ${measuredMs / 1_000} s`,
  );
  t.diagnostic(`payments: ${JSON.stringify(failuresIn(late))}, the slowest took ${slowest.toFixed(0)} ms`);
  t.diagnostic(`reads: ${JSON.stringify(failuresIn(reads))}`);

  assert.ok(perSecond >= 4 && perSecond <= 5.1, `${perSecond} a second`);
  for (const { came } of payments) {
    assert.ok(!(came instanceof Error));
    assert.match(String(came.status), /^(201|429)$/, 'no payment is refused by the gateway');
  }
  assert.ok(late.length > 10 && slowest < 5_000); // a pause of three seconds, and its turn
  const refused = reads.flatMap(({ came }) => (came instanceof Error || came.status !== 503 ? [] : [came]));
  assert.ok(refused.length > 0);
  for (const { header } of refused) assert.match(header('Retry-After') ?? '', /^\d+$/);
});
