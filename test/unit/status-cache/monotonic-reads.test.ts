/** Monotonic reads: a TPP never gets a status older than one it has seen. One test for each way it could. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createMemoryState } from '../../../src/state/memory.ts';
import { paymentKeyOf } from '../../../src/status-cache/cache-key.ts';
import { createBlockingState } from '../../kit/blocking-state.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import type { Field } from '../../kit/fields.ts';
import { cancellation, createCacheInstance, statusIn, statusRead } from './cache-instance.ts';
import { createControlledBank } from './controlled-bank.ts';

const withToken = (token: string, ...headers: readonly Field[]) =>
  statusRead({ headers: [['Authorization', `Bearer ${token}`], ...headers] });

describe('status reads after a newer status was seen', () => {
  test('serves the newer status to another token whose older one is cached', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(withToken('one'));
    bank.answer.status = 'ACTC';
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('fetches a slow read again whose response is older', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    const release = bank.holdNext();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.answer.status = 'ACTC';
    await send(withToken('two'));
    release();
    assert.equal(statusIn(await slow), 'ACTC');
  });

  test('does not serve an older status that was cached during a signed read', async () => {
    const gate = Promise.withResolvers<void>();
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), async ({ headers }) => {
      if (headers.some(([name]) => name === 'Signature')) await gate.promise;
      return bank.handle();
    });
    const signed = send(withToken('one', ['Signature', 'keyId="1"']));
    await setImmediate();
    await send(withToken('one'));
    bank.answer.status = 'ACTC';
    gate.resolve();
    assert.equal(statusIn(await signed), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('fetches a slow read again whose response is older and must not be stored', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(withToken('zero'));
    bank.answer.headers = [['Cache-Control', 'no-store']];
    const release = bank.holdNext();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.answer.status = 'ACTC';
    await send(withToken('two'));
    release();
    assert.equal(statusIn(await slow), 'ACTC');
  });

  for (const [answer, fields] of [
    ['must not be stored', [['Cache-Control', 'no-store']]],
    ['sets a cookie', [['Set-Cookie', 'session=1']]],
    ['varies with everything', [['Vary', '*']]],
  ] as const) {
    test(`serves no older status although the newer response ${answer}`, async () => {
      const bank = createControlledBank('RCVD');
      const { send } = createCacheInstance(createMemoryState(), bank.handle);
      await send(withToken('one'));
      Object.assign(bank.answer, { status: 'ACTC', headers: fields });
      assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  for (const field of [
    ['Signature', 'keyId="1"'],
    ['Cache-Control', 'no-store'],
    ['Range', 'bytes=0-'],
  ] as const) {
    test(`serves no older status although the newer one was read with ${field[0]}: ${field[1]}`, async () => {
      const bank = createControlledBank('RCVD');
      const { send } = createCacheInstance(createMemoryState(), bank.handle);
      await send(withToken('one'));
      bank.answer.status = 'ACTC';
      assert.equal(statusIn(await send(withToken('one', field))), 'ACTC');
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  for (const status of [203, 206]) {
    test(`serves no older status although the newer one came with status ${status}`, async () => {
      const bank = createControlledBank('RCVD');
      let code = 200;
      const { send } = createCacheInstance(createMemoryState(), async () => ({
        ...(await bank.handle()),
        status: code,
      }));
      await send(withToken('one'));
      bank.answer.status = 'ACTC';
      code = status;
      assert.equal((await send(withToken('one', ['Range', 'bytes=0-']))).status, status);
      code = 200;
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  test('serves no older status although the newer response is too large to be stored', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.handle);
    await send(withToken('one'));
    Object.assign(bank.answer, { status: 'ACTC', more: { psuMessage: 'x'.repeat(300_000) } });
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('serves no older status after the state was unavailable during the newer read', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    await send(withToken('one'));
    state.fail();
    bank.answer.status = 'ACTC';
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    state.recover();
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('serves no older status while the state rejects writes', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.handle);
    await send(withToken('one'));
    state.fail('write', 'writeIfAbsent', 'replace');
    bank.answer.status = 'ACTC';
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('does not replace a newer status that a later version of the gateway has stored', async () => {
    const bank = createControlledBank('RCVD');
    const state = createMemoryState();
    const { send } = createCacheInstance(state, bank.handle);
    const key = paymentKeyOf('sandbox', 'a-payment');
    await state.keyValues.write(key, '{"v":2,"status":"RCVD"}');
    const release = bank.holdNext();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.answer.status = 'ACTC';
    await state.keyValues.write(key, '{"v":2,"status":"ACTC"}');
    release();
    assert.equal(statusIn(await slow), 'ACTC');
  });
});

describe('a read that arrives while an older one is in progress', () => {
  test('does not share an older status that the state is still returning', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank.handle), createCacheInstance(shared, bank.handle)];
    await here.send(withToken('one'));
    const release = slow.block('read');
    const early = here.send(withToken('one')); // reads RCVD, but does not receive it yet
    await setImmediate();
    bank.answer.status = 'ACTC';
    assert.equal(statusIn(await there.send(withToken('two'))), 'ACTC');
    const late = here.send(withToken('one'));
    await setImmediate();
    release();
    assert.equal(statusIn(await late), 'ACTC');
    await early;
  });

  test('does not share an older status whose lease is still being released', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank.handle), createCacheInstance(shared, bank.handle)];
    const release = slow.block('remove');
    const early = here.send(withToken('one'));
    for (let round = 0; round < 5; round++) await setImmediate();
    bank.answer.status = 'ACTC';
    await there.send(cancellation());
    const late = here.send(withToken('one'));
    await setImmediate();
    release();
    assert.equal(statusIn(await late), 'ACTC');
    await early;
  });
});
