/** Equal reads at the same time are one question to the bank, and whoever shares its answer is told so. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { headerValue } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { within } from '../../kit/within.ts';
import { bankResponse, createCacheInstance, statusIn, statusRead, statusResponse } from './cache-instance.ts';

/** A bank whose answers wait until they are let go. */
function slowBank(answer: () => PisResponse) {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const bank = async () => {
    asked++;
    await gate.promise;
    return answer();
  };
  return { bank, open: gate.resolve, asked: () => asked };
}

const times = (count: number, act: () => Promise<PisResponse>) =>
  Promise.all(Array.from({ length: count }, act));

describe('equal reads at the same time', () => {
  test('are one question, and all but the first are told that they shared it', async () => {
    const { bank, open, asked } = slowBank(() => statusResponse('ACTC'));
    const { send, counts } = createCacheInstance(createMemoryState(), bank);
    const answers = times(10, () => send(statusRead()));
    await setImmediate();
    open();
    const told = (await answers).map(({ servedFrom, headers }) => [
      servedFrom,
      headerValue(headers, 'cache-status'),
    ]);
    assert.equal(asked(), 1);
    assert.deepEqual(told[0], ['bank', 'penstock; fwd=miss']);
    for (const other of told.slice(1)) assert.deepEqual(other, ['shared', 'penstock; fwd=miss; collapsed']);
    assert.deepEqual(Object.fromEntries(counts), { miss: 1, shared: 9 });
  });

  test('on two instances are one question, too', async () => {
    const { bank, open, asked } = slowBank(() => statusResponse('ACTC'));
    const state = createMemoryState();
    const [one, other] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    const answers = [times(10, () => one.send(statusRead())), times(10, () => other.send(statusRead()))];
    await setImmediate();
    open();
    for (const answer of (await Promise.all(answers)).flat()) assert.equal(statusIn(answer), 'ACTC');
    assert.equal(asked(), 1);
  });

  test('are one question, though one instance hears late that there was nothing when it looked', async () => {
    let asked = 0;
    const bank = async () => statusResponse('ACTC', [], { number: asked++ });
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank), createCacheInstance(shared, bank)];
    await here.runMaintenance();
    const letGo = slow.block('read');
    const late = here.send(statusRead());
    await there.send(statusRead());
    letGo();
    assert.equal((await late).servedFrom, 'shared');
    assert.equal(asked, 1);
  });

  test('of several payments do not wait for each other', async () => {
    const { bank, open, asked } = slowBank(() => statusResponse('ACTC'));
    const { send } = createCacheInstance(createMemoryState(), bank);
    const answers = ['one', 'two', 'three'].map((payment) => send(statusRead({ payment })));
    await setImmediate();
    await setImmediate();
    assert.equal(asked(), 3);
    open();
    await Promise.all(answers);
  });

  test('share a failure as well: a bank that is down is asked once', async () => {
    const { bank, open, asked } = slowBank(() =>
      bankResponse(500, [['Cache-Control', 'no-store']], 'broken'),
    );
    const { send } = createCacheInstance(createMemoryState(), bank);
    const answers = times(10, () => send(statusRead()));
    await setImmediate();
    open();
    assert.ok((await answers).every(({ status }) => status === 500));
    assert.equal(asked(), 1);
  });

  test('share what was thrown', async () => {
    let asked = 0;
    const bank = async () => {
      asked++;
      throw new GatewayError('UPSTREAM_UNREACHED', 'nobody there');
    };
    const { send } = createCacheInstance(createMemoryState(), bank);
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => send(statusRead())));
    assert.ok(outcomes.every(({ status }) => status === 'rejected'));
    assert.equal(asked, 1);
  });

  for (const [why, field] of [
    ['must not be stored', ['Cache-Control', 'no-store']],
    ['sets a cookie', ['Set-Cookie', 'session=1']],
    ['varies with anything', ['Vary', '*']],
    ['varies with what is not looked at', ['Vary', 'X-Device']],
  ] as const) {
    for (const health of ['well', 'out of reach'] as const) {
      test(`do not share an answer that ${why}, while the state is ${health}`, async () => {
        let asked = 0;
        const { bank, open } = slowBank(() => statusResponse('ACTC', [field], { number: asked++ }));
        const state = createFailingState();
        const { send, runMaintenance } = createCacheInstance(state, bank);
        await runMaintenance();
        if (health === 'out of reach') state.fail();
        const answers = times(3, () => send(statusRead()));
        await setImmediate();
        open();
        const bodies = (await answers).map(({ body }) => body.toString());
        assert.equal(new Set(bodies).size, 3);
      });
    }
  }
});

describe('a lease of an instance that died', () => {
  test('keeps the others waiting for no longer than it lasts', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    let nowMs = 0;
    const state = createMemoryState(() => nowMs);
    const dead = createCacheInstance(state, () => new Promise(() => {}));
    void dead.send(statusRead());
    await setImmediate();
    t.mock.timers.reset(); // its timers never fire again: it is dead
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });

    const alive = createCacheInstance(state, async () => statusResponse('ACTC'));
    let waitedMs = 0;
    const answer = alive.send(statusRead()).then((response) => ({ response, waitedMs }));
    for (; waitedMs <= 4_000; waitedMs += 100) {
      nowMs = waitedMs;
      t.mock.timers.tick(100);
      for (let turn = 0; turn < 10; turn++) await setImmediate();
    }
    const { response, waitedMs: waited } = await within(1_000, 'an answer', answer);
    assert.equal(statusIn(response), 'ACTC');
    assert.ok(waited <= 3_300, `${waited} ms`);
    t.diagnostic(`waited ${waited} ms for a lease of 3,000`);
  });
});
