/** The state loses entries too early or too late: the instance that knows the outcome stores it again (F1, F2, G). */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { type Sections, shortDeadlines, startBank, startGateway } from '../kit/gateway.ts';
import { until } from '../kit/within.ts';
import { newWrite, outcomeOf, withUpdates, writeNames } from '../kit/writes.ts';

async function startGatewayOn(t: TestContext, state: State, sections: Sections = {}) {
  const bank = await startBank(t);
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  return { bank, gateway: await startGateway(t, { environments, ...withUpdates, ...sections }, state) };
}

/** A state that can lose all data, like a Redis that is flushed. */
function createErasableState() {
  let { keyValues, sets, ...rest } = createMemoryState();
  const state: State = {
    ...rest,
    keyValues: {
      read: (...all) => keyValues.read(...all),
      write: (...all) => keyValues.write(...all),
      writeIfAbsent: (...all) => keyValues.writeIfAbsent(...all),
      replace: (...all) => keyValues.replace(...all),
      remove: (...all) => keyValues.remove(...all),
      removeIf: (...all) => keyValues.removeIf(...all),
    },
    sets: {
      add: (...all) => sets.add(...all),
      remove: (...all) => sets.remove(...all),
      members: (...all) => sets.members(...all),
    },
  };
  return {
    state,
    erase() {
      ({ keyValues, sets } = createMemoryState());
    },
  };
}

describe('a write during which the state loses all data', () => {
  for (const name of writeNames) {
    test(`is answered, and a repeat gets the stored response: ${name}`, async (t) => {
      const { state, erase } = createErasableState();
      const { bank, gateway } = await startGatewayOn(t, state);
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'latency', ms: 200, strikes: 'before-effect' }, { times: 1 });
      const first = call(gateway.url, write.call);
      await bank.waitUntil(() => write.timesReceived() === 1);
      erase();
      assert.match(outcomeOf(await first), /^20[012]$/);
      assert.match(outcomeOf(await call(gateway.url, write.call)), /^20[012] replayed$/);
      assert.equal(write.timesReceived(), 1);
      await until(2_000, 'the loss is logged', () =>
        gateway.logLines.some((line) => /"error".*the ledger entry of a payment was lost/.test(line)),
      );
    });

    test(`is in doubt without a response, and is listed: ${name}`, async (t) => {
      const { state, erase } = createErasableState();
      const { bank, gateway } = await startGatewayOn(t, state, shortDeadlines);
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'never-answer', strikes: 'before-effect' }, { times: 1 });
      const first = call(gateway.url, write.call);
      await bank.waitUntil(() => write.timesReceived() === 1);
      erase();
      assert.equal(outcomeOf(await first), '504 OUTCOME_UNKNOWN');
      assert.equal(outcomeOf(await call(gateway.url, write.call)), '409 DUPLICATE_IN_DOUBT');
      assert.equal(write.timesReceived(), 1);
      const [listed] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as Record<string, unknown>[];
      assert.equal(listed?.xRequestId, write.requestId);
    });
  }
});

describe('the marker of a released write', () => {
  test('does not block a repeat if it does not expire in time, as in a Redis with a slow clock', async (t) => {
    const { keyValues, ...rest } = createMemoryState();
    const replace: typeof keyValues.replace = (key, expected, value, ttlMs) =>
      keyValues.replace(key, expected, value, value === '' ? undefined : ttlMs);
    const { bank, gateway } = await startGatewayOn(t, { ...rest, keyValues: { ...keyValues, replace } });
    const write = await newWrite(bank, 'initiation');
    bank.injectFault({ name: 'too-many-requests' }, { times: 1 });
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '429');
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '201');
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '201 replayed');
    assert.equal(write.effectCount(), 1);
  });
});
