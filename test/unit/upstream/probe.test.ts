import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/flow/errors.ts';
import type { Answered } from '../../../src/upstream/bank-limit.ts';
import { createProbe } from '../../../src/upstream/probe.ts';
import type { Shaper } from '../../../src/upstream/shaper.ts';
import { simulateTime } from '../../kit/simulated-time.ts';

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

  test('comes back although the bank never answers', async (t) => {
    const time = simulateTime(t);
    const probe = createProbe({ shaper: open, get: () => new Promise(() => {}), boundMs: 5_000 })('read');
    await time.pass(5_100);
    assert.equal(await probe, 'failing');
  });

  test('whose turn does not come by its deadline tells nothing: nothing was sent', async (t) => {
    const time = simulateTime(t);
    const shaper: Pick<Shaper, 'run'> = {
      async run() {
        const late = Promise.withResolvers<never>();
        setTimeout(() => late.reject(new GatewayError('QUEUE_TIMEOUT', 'as the test says')), 5_000);
        return late.promise;
      },
    };
    const probe = createProbe({ shaper, get: answers(200), boundMs: 5_000 })('write');
    await time.pass(5_100);
    assert.equal(await probe, 'nothing');
  });
});
