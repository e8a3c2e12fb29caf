import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createLookUpLimits } from '../../../src/self-service/look-up-limits.ts';
import { createMemoryTokenBuckets } from '../../../src/state/memory.ts';

/** Longer than any test. */
const patientMs = 600_000;

function createLimits(deadlineMs = patientMs) {
  let nowMs = 0;
  const { take } = createMemoryTokenBuckets(() => nowMs);
  return {
    ...createLookUpLimits({ take, deadlineMs }),
    advance(ms: number) {
      nowMs += ms;
    },
  };
}

const done = async () => 'done';

/** The code and `Retry-After` of the refusal. */
async function refusalOf(promise: Promise<unknown>) {
  const error = await promise.then(
    () => assert.fail('it was not refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  return [error.code, ...error.headers.flat()];
}

describe('the limits of look-ups', () => {
  test('refuse a second look-up of a tenant while the first one is in progress', async () => {
    const limits = createLimits();
    const first = Promise.withResolvers<string>();
    const running = limits.run('shop', () => first.promise);
    assert.deepEqual(await refusalOf(limits.run('shop', done)), ['QUOTA_EXCEEDED', 'Retry-After', '1']);
    first.resolve('first');
    assert.equal(await running, 'first');
    assert.equal(await limits.run('shop', done), 'done');
  });

  test('allow a tenant ten look-ups at once and one per second, whatever the others do', async () => {
    const limits = createLimits();
    for (let count = 0; count < 10; count++) await limits.run('shop', done);
    assert.deepEqual(await refusalOf(limits.run('shop', done)), ['QUOTA_EXCEEDED', 'Retry-After', '1']);
    assert.equal(await limits.run('rival', done), 'done');
    limits.advance(1_000);
    assert.equal(await limits.run('shop', done), 'done');
    assert.deepEqual(await refusalOf(limits.run('shop', done)), ['QUOTA_EXCEEDED', 'Retry-After', '1']);
  });

  test('run the look-ups of several tenants one after the other, in their order, also after one that failed', async () => {
    const limits = createLimits();
    const events: string[] = [];
    const lookUp = (tenant: string) => async () => {
      events.push(`begin ${tenant}`);
      await setImmediate();
      events.push(`end ${tenant}`);
      if (tenant === 'b') throw new Error('b');
    };
    const tenants = ['a', 'b', 'c'];
    const results = await Promise.allSettled(tenants.map((tenant) => limits.run(tenant, lookUp(tenant))));
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(events, ['begin a', 'end a', 'begin b', 'end b', 'begin c', 'end c']);
  });

  test('end at the deadline, skip a look-up that still waits, and count one that still runs', async () => {
    const limits = createLimits(1);
    const slow = Promise.withResolvers<string>();
    let isBegun = false;
    const running = limits.run('shop', () => slow.promise);
    const waiting = limits.run('rival', async () => {
      isBegun = true;
    });
    assert.deepEqual(await refusalOf(running), ['STATE_UNAVAILABLE']);
    assert.deepEqual(await refusalOf(waiting), ['STATE_UNAVAILABLE']);
    assert.deepEqual(await refusalOf(limits.run('shop', done)), ['QUOTA_EXCEEDED', 'Retry-After', '1']);
    slow.resolve('late');
    await setImmediate(); // the promises of the late look-up have run
    assert.equal(isBegun, false);
    assert.equal(await limits.run('shop', done), 'done');
  });
});
