/** No TPP sees a status older than one it has seen: each way in which it could. */

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

describe('a status that one token has seen', () => {
  test('is not followed by an older one that another token was kept with', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.says);
    await send(withToken('one'));
    bank.told.now = 'ACTC';
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('is not followed by an older one that was long on its way: that read is asked again', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.says);
    const letGo = bank.hold();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.told.now = 'ACTC';
    await send(withToken('two'));
    letGo();
    assert.equal(statusIn(await slow), 'ACTC');
  });

  test('by a signed read is not followed by an older one that was kept while it was on its way', async () => {
    const gate = Promise.withResolvers<void>();
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), async ({ headers }) => {
      if (headers.some(([name]) => name === 'Signature')) await gate.promise;
      return bank.says();
    });
    const signed = send(withToken('one', ['Signature', 'keyId="1"']));
    await setImmediate();
    await send(withToken('one'));
    bank.told.now = 'ACTC';
    gate.resolve();
    assert.equal(statusIn(await signed), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('is not followed by an older one that was long on its way and must not be stored', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.says);
    await send(withToken('zero'));
    bank.told.fields = [['Cache-Control', 'no-store']];
    const letGo = bank.hold();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.told.now = 'ACTC';
    await send(withToken('two'));
    letGo();
    assert.equal(statusIn(await slow), 'ACTC');
  });

  for (const [answer, fields] of [
    ['must not be stored', [['Cache-Control', 'no-store']]],
    ['sets a cookie', [['Set-Cookie', 'session=1']]],
    ['varies with anything', [['Vary', '*']]],
  ] as const) {
    test(`is not followed by an older one, although its answer ${answer}`, async () => {
      const bank = createControlledBank('RCVD');
      const { send } = createCacheInstance(createMemoryState(), bank.says);
      await send(withToken('one'));
      Object.assign(bank.told, { now: 'ACTC', fields });
      assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  for (const field of [
    ['Signature', 'keyId="1"'],
    ['Cache-Control', 'no-store'],
    ['Range', 'bytes=0-'],
  ] as const) {
    test(`is not followed by an older one, although it was asked for with ${field[0]}: ${field[1]}`, async () => {
      const bank = createControlledBank('RCVD');
      const { send } = createCacheInstance(createMemoryState(), bank.says);
      await send(withToken('one'));
      bank.told.now = 'ACTC';
      assert.equal(statusIn(await send(withToken('one', field))), 'ACTC');
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  for (const status of [203, 206]) {
    test(`is not followed by an older one, although it came with ${status}`, async () => {
      const bank = createControlledBank('RCVD');
      let coded = 200;
      const { send } = createCacheInstance(createMemoryState(), async () => ({
        ...(await bank.says()),
        status: coded,
      }));
      await send(withToken('one'));
      bank.told.now = 'ACTC';
      coded = status;
      assert.equal((await send(withToken('one', ['Range', 'bytes=0-']))).status, status);
      coded = 200;
      assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    });
  }

  test('is not followed by an older one, although its answer is too large to be kept', async () => {
    const bank = createControlledBank('RCVD');
    const { send } = createCacheInstance(createMemoryState(), bank.says);
    await send(withToken('one'));
    Object.assign(bank.told, { now: 'ACTC', more: { psuMessage: 'x'.repeat(300_000) } });
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('while the state was out of reach is not followed by an older one when it is back', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.says);
    await send(withToken('one'));
    state.fail();
    bank.told.now = 'ACTC';
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
    state.recover();
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('while the state took nothing is not followed by an older one', async () => {
    const bank = createControlledBank('RCVD');
    const state = createFailingState();
    const { send } = createCacheInstance(state, bank.says);
    await send(withToken('one'));
    state.fail('write', 'writeIfAbsent', 'replace');
    bank.told.now = 'ACTC';
    assert.equal(statusIn(await send(withToken('two'))), 'ACTC');
    assert.equal(statusIn(await send(withToken('one'))), 'ACTC');
  });

  test('and that a later version of the gateway has kept is not replaced by an older one', async () => {
    const bank = createControlledBank('RCVD');
    const state = createMemoryState();
    const { send } = createCacheInstance(state, bank.says);
    const key = paymentKeyOf('sandbox', 'a-payment');
    await state.keyValues.write(key, '{"v":2,"status":"RCVD"}');
    const letGo = bank.hold();
    const slow = send(withToken('one'));
    await setImmediate();
    bank.told.now = 'ACTC';
    await state.keyValues.write(key, '{"v":2,"status":"ACTC"}');
    letGo();
    assert.equal(statusIn(await slow), 'ACTC');
  });
});

describe('a read that came after an answer was decided', () => {
  test('does not share it, though it is still on its way from the state', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank.says), createCacheInstance(shared, bank.says)];
    await here.send(withToken('one'));
    const letGo = slow.block('read');
    const early = here.send(withToken('one')); // reads RCVD, and does not hear of it yet
    await setImmediate();
    bank.told.now = 'ACTC';
    assert.equal(statusIn(await there.send(withToken('two'))), 'ACTC');
    const late = here.send(withToken('one'));
    await setImmediate();
    letGo();
    assert.equal(statusIn(await late), 'ACTC');
    await early;
  });

  test('does not share it, though its lease is still being given back', async () => {
    const bank = createControlledBank('RCVD');
    const shared = createMemoryState();
    const slow = createBlockingState(shared);
    const [here, there] = [createCacheInstance(slow, bank.says), createCacheInstance(shared, bank.says)];
    const letGo = slow.block('remove');
    const early = here.send(withToken('one'));
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    bank.told.now = 'ACTC';
    await there.send(cancellation());
    const late = here.send(withToken('one'));
    await setImmediate();
    letGo();
    assert.equal(statusIn(await late), 'ACTC');
    await early;
  });
});
