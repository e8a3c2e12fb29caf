import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../../src/flow/errors.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import { createProbe } from '../../../../src/upstream/circuit/probe.ts';
import { type Answered, createBankLimit } from '../../../../src/upstream/shaping/bank-limit.ts';
import { createShaper, type Shaper } from '../../../../src/upstream/shaping/shaper.ts';
import { simulateTime } from '../../../kit/simulated-time.ts';

/** A shaper that gives a turn at once. */
const open: Pick<Shaper, 'run'> = { run: (_call, send) => send() };
const answers = (status: number) => async (): Promise<Answered> => ({ status, headers: [] });

describe('a probe', () => {
  for (const [status, verdict] of [
    [200, 'well'],
    [302, 'well'],
    [404, 'well'],
    [429, 'well'],
    [500, 'failing'],
    [503, 'failing'],
  ] as const) {
    test(`that is answered ${status} finds the bank ${verdict}`, async () => {
      assert.equal(await createProbe({ shaper: open, get: answers(status), boundMs: 100 })('read'), verdict);
    });
  }

  for (const [code, verdict] of [
    ['UPSTREAM_UNREACHED', 'failing'],
    ['OUTCOME_UNKNOWN', 'failing'],
    ['QUEUE_TIMEOUT', 'nothing'],
    ['QUEUE_FULL', 'nothing'],
  ] as const) {
    test(`that ends in ${code} finds the bank ${verdict}`, async () => {
      const get = () => Promise.reject(new GatewayError(code, 'as the test says'));
      assert.equal(await createProbe({ shaper: open, get, boundMs: 100 })('read'), verdict);
    });
  }

  test('that never left the line says nothing of the bank', async (t) => {
    const time = simulateTime(t);
    const reservations = { reserve: async () => 60_000 };
    const state = createMemoryState();
    const limit = createBankLimit('sandbox', { perSecond: 50, burst: 50 }, state);
    const maxWait = { write: 10_000, read: 10_000, status: 10_000 };
    const settings = { rate: 50, burst: 50, maxConcurrent: 100, queue: 1_000, maxWait, expectedInstances: 1 };
    const shaper = createShaper('sandbox', settings, { reservations, limit, now: time.now });
    const asked = createProbe({ shaper, get: answers(200), boundMs: 10_000, now: time.now })('write');
    await time.pass(10_001);
    assert.equal(await asked, 'nothing');
  });

  test('takes a turn in its lane, and must be over in time', async (t) => {
    const time = simulateTime(t);
    const seen: unknown[] = [];
    const shaper: Pick<Shaper, 'run'> = {
      run(call, send) {
        seen.push(call);
        return send();
      },
    };
    const get = async (deadlineAtMs: number) => {
      seen.push(deadlineAtMs);
      return { status: 200, headers: [] };
    };
    await createProbe({ shaper, get, boundMs: 5_000, now: time.now })('write');
    const deadlineAtMs = time.now() + 5_000;
    assert.deepEqual(seen, [{ lane: 'write', tenant: '', deadlineAtMs }, deadlineAtMs]);
  });
});
