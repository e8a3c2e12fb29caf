/** The cache is never behind what another operation has shown. One test for each way it could be. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  authorisationRead,
  bankResponse,
  createCacheInstance,
  paymentRead,
  statusIn,
  statusRead,
} from './cache-instance.ts';
import { createControlledBank } from './controlled-bank.ts';

const json = [['Content-Type', 'application/json']] as const;
const tokenTwo = { headers: [['Authorization', 'Bearer two']] } as const;

/** Returns what is sent to the state from now on. */
function countOperations(state: ReturnType<typeof createFailingState>) {
  const before = state.operations.length;
  return () => state.operations.slice(before).map((operation) => operation.split(' ')[0]);
}

describe('a status read after a read of the payment', () => {
  for (const service of ['payments', 'periodic-payments']) {
    test(`goes to the bank if the payment had another status than the cached one (${service})`, async () => {
      const bank = createControlledBank('RCVD');
      const state = createMemoryState();
      const [here, there] = [
        createCacheInstance(state, bank.handle),
        createCacheInstance(state, bank.handle),
      ];
      await there.send(statusRead({ service }));
      bank.answer.status = 'ACSC';
      await here.send(paymentRead({ service }));
      const { servedFrom, body } = await there.send(statusRead({ service }));
      assert.deepEqual([servedFrom, JSON.parse(body.toString()).transactionStatus], ['bank', 'ACSC']);
      assert.equal((await there.send(statusRead({ service }))).servedFrom, 'cache');
    });
  }

  test('comes from the cache if the payment had the cached status, and the state was only read once for it', async () => {
    const bank = createControlledBank('ACTC');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    await send(statusRead());
    const operations = countOperations(state);
    await send(paymentRead());
    assert.deepEqual(operations(), ['read']);
    assert.equal((await send(statusRead())).servedFrom, 'cache');
  });

  test('goes to the bank if an older status was on its way when the payment was read', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    const release = bank.holdNext();
    const slow = send(statusRead());
    await setImmediate();
    bank.answer.status = 'ACSC';
    await send(paymentRead());
    release();
    assert.equal(statusIn(await slow), 'ACSC');
    assert.equal(statusIn(await send(statusRead())), 'ACSC');
  });

  test('goes to the bank if the cached status is from before the request, which was waiting to be sent', async () => {
    const bank = createControlledBank('ACTC');
    const turn = Promise.withResolvers<void>();
    const { send } = createCacheInstance(createFailingState(), async ({ operation, onSent }) => {
      if (!operation.readsStatus) await turn.promise;
      onSent?.();
      return bank.handle();
    });
    await send(statusRead());
    const waiting = send(paymentRead());
    await setImmediate();
    bank.answer.status = 'ACSC';
    for (let read = 0; read < 2; read++) await send(statusRead(tokenTwo)); // the first one empties the cache
    assert.equal((await send(statusRead(tokenTwo))).servedFrom, 'cache');
    bank.answer.status = 'ACTC';
    turn.resolve();
    assert.equal(statusIn(await waiting), 'ACTC');
    const { servedFrom, body } = await send(statusRead(tokenTwo));
    assert.deepEqual([servedFrom, JSON.parse(body.toString()).transactionStatus], ['bank', 'ACTC']);
  });

  test('goes to the bank if the payment was sent twice, and the cached status is from between', async () => {
    const bank = createControlledBank('ACTC');
    const turn = Promise.withResolvers<void>();
    const { send } = createCacheInstance(createFailingState(), async ({ operation, onSent }) => {
      onSent?.();
      if (!operation.readsStatus) await turn.promise;
      onSent?.();
      return bank.handle();
    });
    await send(statusRead());
    const retried = send(paymentRead());
    await setImmediate();
    bank.answer.status = 'ACSC';
    for (let read = 0; read < 2; read++) await send(statusRead(tokenTwo));
    bank.answer.status = 'ACTC';
    turn.resolve();
    assert.equal(statusIn(await retried), 'ACTC');
    assert.equal((await send(statusRead(tokenTwo))).servedFrom, 'bank');
  });

  test('goes to the bank although the state failed while the bank worked on the payment', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, async ({ operation, onSent }) => {
      if (!operation.readsStatus) state.fail();
      onSent?.();
      await setImmediate();
      state.recover();
      return bank.handle();
    });
    await send(statusRead());
    bank.answer.status = 'ACSC';
    assert.equal(statusIn(await send(paymentRead())), 'ACSC');
    assert.equal(statusIn(await send(statusRead())), 'ACSC');
  });

  test('gets no stale status from before while the bank fails', async () => {
    const bank = createControlledBank('RCVD');
    let fails = false;
    const { send } = createCacheInstance(createMemoryState(), async () => {
      if (fails) throw new GatewayError('CIRCUIT_OPEN', 'the bank fails');
      return bank.handle();
    });
    await send(statusRead());
    bank.answer.status = 'ACSC';
    await send(paymentRead());
    fails = true;
    await assert.rejects(send(statusRead()), { code: 'CIRCUIT_OPEN' });
  });

  test('goes to the bank although the state failed when the payment was read', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    await send(statusRead());
    state.fail();
    bank.answer.status = 'ACSC';
    assert.equal(statusIn(await send(paymentRead())), 'ACSC');
    state.recover();
    assert.equal(statusIn(await send(statusRead())), 'ACSC');
  });

  test('goes to the bank if the payment was compressed and had another status', async () => {
    const compressed = bankResponse(200, [...json, ['Content-Encoding', 'gzip']]);
    const body = gzipSync('{"transactionStatus":"ACSC"}');
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), async ({ operation }) =>
      operation.readsStatus ? bank.handle() : { ...compressed, body },
    );
    await send(statusRead());
    await send(paymentRead());
    assert.equal((await send(statusRead())).servedFrom, 'bank');
  });

  test('does not share an older status that was on its way when the state failed at the read of the payment', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    const release = bank.holdNext();
    const early = send(statusRead());
    await setImmediate();
    bank.answer.status = 'ACSC';
    state.fail();
    await send(paymentRead());
    const late = send(statusRead());
    await setImmediate();
    state.recover();
    release();
    await early;
    assert.equal(statusIn(await late), 'ACSC');
  });

  for (const [what, answer] of [
    ['in XML', bankResponse(200, [['Content-Type', 'application/xml']], '<Document/>')],
    ['without a status', bankResponse(200, json, '{}')],
    ['refused by the bank', bankResponse(403, json, '{"transactionStatus":"ACSC"}')],
  ] as const) {
    test(`comes from the cache if the payment was ${what}`, async () => {
      const bank = createControlledBank('RCVD');
      const { send } = createCacheInstance(createMemoryState(), async ({ operation }) =>
        operation.readsStatus ? bank.handle() : answer,
      );
      await send(statusRead());
      assert.equal(await send(paymentRead()), answer);
      assert.equal((await send(statusRead())).servedFrom, 'cache');
    });
  }
});

describe('a status read after the end of an authorisation', () => {
  for (const end of ['finalised', 'failed', 'exempted']) {
    test(`goes to the bank once when a read of the authorisation says ${end}`, async () => {
      let scaStatus = 'started';
      const bank = createControlledBank('RCVD');
      const state = createFailingState();
      const { send } = createCacheInstance(state, async ({ operation }) =>
        operation.readsStatus ? bank.handle() : bankResponse(200, json, JSON.stringify({ scaStatus })),
      );
      await send(statusRead());
      await send(authorisationRead());
      assert.equal((await send(statusRead())).servedFrom, 'cache', 'the authorisation has not ended');
      scaStatus = end;
      await send(authorisationRead());
      assert.equal((await send(statusRead())).servedFrom, 'bank');
      const operations = countOperations(state);
      await send(authorisationRead());
      assert.deepEqual(operations(), ['read']);
      assert.equal((await send(statusRead())).servedFrom, 'cache');
    });
  }
});

describe('a status that changes', () => {
  test('is stored from the second response on: an equal read may have returned the old one during the first', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(statusRead());
    const release = bank.holdNext();
    bank.answer.status = 'ACTC';
    const slow = send(statusRead(tokenTwo));
    await setImmediate();
    bank.answer.status = 'RCVD'; // banks do go back
    assert.equal(statusIn(await send(paymentRead())), 'RCVD');
    release();
    assert.equal(statusIn(await slow), 'ACTC');
    assert.equal(statusIn(await send(statusRead(tokenTwo))), 'RCVD');
    assert.equal((await send(statusRead(tokenTwo))).servedFrom, 'cache');
  });

  test('is not shared with a read that arrived after the old status was shown again', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(statusRead());
    const release = bank.holdNext();
    bank.answer.status = 'ACTC';
    const early = send(statusRead(tokenTwo));
    await setImmediate();
    bank.answer.status = 'RCVD';
    await send(paymentRead());
    const late = send(statusRead(tokenTwo));
    await setImmediate();
    release();
    assert.deepEqual([statusIn(await early), statusIn(await late)], ['ACTC', 'RCVD']);
  });

  test('twice during a read is not shared with a read that arrived in between', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(statusRead());
    const release = bank.holdNext();
    const early = send(statusRead(tokenTwo));
    await setImmediate();
    bank.answer.status = 'ACTC';
    await send(paymentRead());
    const late = send(statusRead(tokenTwo));
    await setImmediate();
    bank.answer.status = 'RCVD';
    await send(paymentRead()); // the status is the one of the early read again, which is from before
    bank.answer.status = 'ACSP';
    release();
    assert.deepEqual([statusIn(await early), statusIn(await late)], ['RCVD', 'ACSP']);
  });
});

describe('the disabled cache', () => {
  test('does not use the state for reads of the payment', async () => {
    const state = createFailingState();
    const settings = { statusCache: { enabled: false } };
    const { send } = createCacheInstance(state, createControlledBank('ACSC').handle, settings);
    await send(paymentRead());
    assert.deepEqual(state.operations, []);
  });
});
