/** Single flight: equal reads at the same time are one fetch from the bank, and shared responses are marked. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { headerValue } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { until, within } from '../../kit/within.ts';
import {
  bankResponse,
  bankStatusResponse,
  createCacheInstance,
  statusIn,
  statusRead,
} from './cache-instance.ts';

/** A bank that sends its responses only after `open` was called. */
function slowBank(answer: () => PisResponse) {
  const gate = Promise.withResolvers<void>();
  let fetches = 0;
  const bank = async () => {
    fetches++;
    await gate.promise;
    return answer();
  };
  return { bank, open: gate.resolve, fetches: () => fetches };
}

const repeat = (count: number, act: () => Promise<PisResponse>) =>
  Promise.all(Array.from({ length: count }, act));

describe('equal reads at the same time', () => {
  test('fetches once for ten equal reads, and marks nine responses as collapsed', async () => {
    const { bank, open, fetches } = slowBank(() => bankStatusResponse('ACTC'));
    const { send, counts } = createCacheInstance(createMemoryState(), bank);
    const answers = repeat(10, () => send(statusRead()));
    await setImmediate();
    open();
    const marks = (await answers).map(({ servedFrom, headers }) => [
      servedFrom,
      headerValue(headers, 'cache-status'),
    ]);
    assert.equal(fetches(), 1);
    assert.deepEqual(marks[0], ['bank', 'penstock; fwd=miss']);
    for (const other of marks.slice(1)) assert.deepEqual(other, ['shared', 'penstock; fwd=miss; collapsed']);
    assert.deepEqual(Object.fromEntries(counts), { miss: 1, shared: 9 });
  });

  test('fetches once for equal reads on two instances', async () => {
    const { bank, open, fetches } = slowBank(() => bankStatusResponse('ACTC'));
    const state = createMemoryState();
    const [one, other] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    const answers = [repeat(10, () => one.send(statusRead())), repeat(10, () => other.send(statusRead()))];
    await setImmediate();
    open();
    for (const answer of (await Promise.all(answers)).flat()) assert.equal(statusIn(answer), 'ACTC');
    assert.equal(fetches(), 1);
  });

  test('fetches once although one instance receives its cache miss late', async () => {
    let fetches = 0;
    const bank = async () => bankStatusResponse('ACTC', [], { number: fetches++ });
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank), createCacheInstance(shared, bank)];
    await here.runMaintenance();
    const release = slow.block('read');
    const late = here.send(statusRead());
    await there.send(statusRead());
    release();
    assert.equal((await late).servedFrom, 'shared');
    assert.equal(fetches, 1);
  });

  test('sends another request if the one in progress may last beyond the deadline of the read', async (t) => {
    const { bank, open, fetches } = slowBank(() => bankStatusResponse('ACTC'));
    t.after(() => open());
    const { send } = createCacheInstance(createMemoryState(), bank);
    const patient = send(statusRead({ withinMs: 60_000 }));
    await setImmediate();
    const impatient = send(statusRead({ withinMs: 500 }));
    await setImmediate();
    assert.equal(fetches(), 2);
    const other = send(statusRead({ withinMs: 60_000 }));
    await setImmediate();
    open();
    for (const answer of await Promise.all([patient, impatient, other]))
      assert.equal(statusIn(answer), 'ACTC');
    assert.equal(fetches(), 2, 'a later read joins one of them');
  });

  test('fetches several payments independently', async () => {
    const { bank, open, fetches } = slowBank(() => bankStatusResponse('ACTC'));
    const { send } = createCacheInstance(createMemoryState(), bank);
    const answers = ['one', 'two', 'three'].map((payment) => send(statusRead({ payment })));
    await setImmediate();
    await setImmediate();
    assert.equal(fetches(), 3);
    open();
    await Promise.all(answers);
  });

  test('shares an error response of the bank', async () => {
    const { bank, open, fetches } = slowBank(() =>
      bankResponse(500, [['Cache-Control', 'no-store']], 'broken'),
    );
    const { send } = createCacheInstance(createMemoryState(), bank);
    const answers = repeat(10, () => send(statusRead()));
    await setImmediate();
    open();
    assert.ok((await answers).every(({ status }) => status === 500));
    assert.equal(fetches(), 1);
  });

  test('shares an error that the fetch throws', async () => {
    let fetches = 0;
    const bank = async () => {
      fetches++;
      throw new GatewayError('UPSTREAM_UNREACHED', 'connection refused');
    };
    const { send } = createCacheInstance(createMemoryState(), bank);
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => send(statusRead())));
    assert.ok(outcomes.every(({ status }) => status === 'rejected'));
    assert.equal(fetches, 1);
  });

  for (const [why, field] of [
    ['must not be stored', ['Cache-Control', 'no-store']],
    ['sets a cookie', ['Set-Cookie', 'session=1']],
    ['varies with everything', ['Vary', '*']],
    ['varies with a field of the requests that is not part of the cache key', ['Vary', 'X-Device']],
  ] as const) {
    for (const health of ['available', 'unavailable'] as const) {
      test(`does not share a response that ${why} while the state is ${health}`, async () => {
        let fetches = 0;
        const { bank, open } = slowBank(() => bankStatusResponse('ACTC', [field], { number: fetches++ }));
        const state = createFailingState();
        const { send, runMaintenance } = createCacheInstance(state, bank);
        await runMaintenance();
        if (health === 'unavailable') state.fail();
        const answers = repeat(3, () => send(statusRead({ headers: [['X-Device', 'phone']] })));
        await setImmediate();
        open();
        const bodies = (await answers).map(({ body }) => body.toString());
        assert.equal(new Set(bodies).size, 3);
      });
    }
  }
});

describe('equal reads of which some have a field of the Vary of the response', () => {
  test('are shared by those without it, and each other one asks the bank itself, on all instances', async () => {
    const { bank, open, fetches } = slowBank(() =>
      bankStatusResponse('ACTC', [['Vary', 'X-Device, Accept']]),
    );
    const state = createMemoryState();
    const [one, other] = [createCacheInstance(state, bank), createCacheInstance(state, bank)];
    const read = (device?: string) => statusRead({ headers: device ? [['X-Device', device]] : [] });
    const plain = [one.send(read()), one.send(read()), other.send(read())];
    await setImmediate();
    const withDevice = [one, one, other, other].map(({ send }, index) => send(read(`device ${index}`)));
    await setImmediate();
    open();
    await Promise.all(plain);
    for (const answer of await Promise.all(withDevice)) assert.equal(answer.servedFrom, 'bank');
    assert.equal(fetches(), 5);
  });

  test('share an error of the bank', async () => {
    const { bank, open, fetches } = slowBank(() => bankResponse(429, [['Vary', 'X-Device']]));
    const { send } = createCacheInstance(createMemoryState(), bank);
    const answers = [send(statusRead()), send(statusRead({ headers: [['X-Device', 'phone']] }))];
    await setImmediate();
    open();
    await Promise.all(answers);
    assert.equal(fetches(), 1);
  });
});

describe('the lease of an instance that was paused until the lease expired', () => {
  test('stays with the next instance when the paused one continues, so that no third instance fetches', async (t) => {
    let nowMs = 0;
    const state = createMemoryState(() => nowMs);
    const paused = slowBank(() => {
      throw new GatewayError('UPSTREAM_UNREACHED', 'connection refused');
    });
    const [next, third] = [
      slowBank(() => bankStatusResponse('ACTC')),
      slowBank(() => bankStatusResponse('ACTC')),
    ];
    t.after(() => {
      for (const { open } of [paused, next, third]) open();
    });
    const send = ({ bank }: Pick<typeof next, 'bank'>) => createCacheInstance(state, bank).send(statusRead());

    const first = send(paused);
    await until(1_000, 'the first instance asks the bank', () => paused.fetches() === 1);
    nowMs += 3_001; // the instance is paused and does not renew its lease
    const second = send(next);
    await until(1_000, 'the second instance asks the bank', () => next.fetches() === 1);
    paused.open();
    await assert.rejects(first);
    await setImmediate(); // the first instance has released what it holds

    const last = send(third);
    for (let round = 0; round < 10; round++) await setImmediate();
    assert.equal(third.fetches(), 0);
    next.open();
    assert.deepEqual(
      (await Promise.all([second, last])).map(({ servedFrom }) => servedFrom),
      ['bank', 'shared'],
    );
  });
});

describe('the lease of an instance that died', () => {
  test('lets another instance fetch once the lease of an instance that died has expired', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    let nowMs = 0;
    const state = createMemoryState(() => nowMs);
    const dead = createCacheInstance(state, () => new Promise(() => {}));
    void dead.send(statusRead());
    await setImmediate();
    t.mock.timers.reset(); // its timers never fire again, as if the process had died
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });

    const alive = createCacheInstance(state, async () => bankStatusResponse('ACTC'));
    let waitedMs = 0;
    const answer = alive.send(statusRead()).then((response) => ({ response, waitedMs }));
    for (; waitedMs <= 4_000; waitedMs += 100) {
      nowMs = waitedMs;
      t.mock.timers.tick(100);
      for (let round = 0; round < 10; round++) await setImmediate();
    }
    const { response, waitedMs: waited } = await within(1_000, 'a response', answer);
    assert.equal(statusIn(response), 'ACTC');
    assert.ok(waited <= 3_300, `${waited} ms`);
  });
});
