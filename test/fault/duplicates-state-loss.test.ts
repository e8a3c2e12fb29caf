/** The state forgets too early, or too late: what this instance knows of a payment is known all the same (F1, F2, G). */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { newWrite, outcomeOf, writeNames } from '../kit/writes.ts';

async function startLine(t: TestContext, state: State, sections: Sections = {}) {
  const bank = await startBank(t);
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  return { bank, gateway: await startGateway(t, { environments, ...sections }, state) };
}

/** A state that can lose all it holds, as a Redis that is emptied. */
function createLosingState() {
  let { keyValues, sets, ...rest } = createMemoryState();
  const state: State = {
    ...rest,
    keyValues: {
      read: (...asked) => keyValues.read(...asked),
      write: (...asked) => keyValues.write(...asked),
      writeIfAbsent: (...asked) => keyValues.writeIfAbsent(...asked),
      replace: (...asked) => keyValues.replace(...asked),
      remove: (...asked) => keyValues.remove(...asked),
    },
    sets: {
      add: (...asked) => sets.add(...asked),
      remove: (...asked) => sets.remove(...asked),
      members: (...asked) => sets.members(...asked),
    },
  };
  return {
    state,
    empty() {
      ({ keyValues, sets } = createMemoryState());
    },
  };
}

describe('a state that is emptied while the bank has a write', () => {
  for (const name of writeNames) {
    test(`is told the answer to the ${name}, and a repeat gets it`, async (t) => {
      const { state, empty } = createLosingState();
      const { bank, gateway } = await startLine(t, state);
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'latency', ms: 200, strikes: 'before-effect' }, { times: 1 });
      const first = call(gateway.url, write.call);
      await bank.waitUntil(() => write.timesReceived() === 1);
      empty();
      assert.match(outcomeOf(await first), /^20[12]$/);
      assert.match(outcomeOf(await call(gateway.url, write.call)), /^20[12] replayed$/);
      assert.equal(write.timesReceived(), 1);
      assert.ok(
        gateway.logLines.some((line) => /"error".*the ledger entry of a payment was lost/.test(line)),
      );
    });

    test(`is told that the ${name} is in doubt, and operators see it`, async (t) => {
      const { state, empty } = createLosingState();
      const deadlines = { connect: '200ms', write: '400ms' };
      const shaping = { maxWait: { write: '100ms' } };
      const { bank, gateway } = await startLine(t, state, {
        deadlines,
        shaping,
        idempotency: { wait: '50ms' },
      });
      const write = await newWrite(bank, name);
      bank.injectFault({ name: 'never-answer', strikes: 'before-effect' }, { times: 1 });
      const first = call(gateway.url, write.call);
      await bank.waitUntil(() => write.timesReceived() === 1);
      empty();
      assert.equal(outcomeOf(await first), '504 OUTCOME_UNKNOWN');
      assert.equal(outcomeOf(await call(gateway.url, write.call)), '409 DUPLICATE_IN_DOUBT');
      assert.equal(write.timesReceived(), 1);
      const [doubt] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as Record<string, unknown>[];
      assert.equal(doubt?.xRequestId, write.requestId);
    });
  }
});

describe('a state that still shows what was given back', () => {
  test('as a Redis whose clock is behind may, does not keep a repeat from being carried out', async (t) => {
    const { keyValues, ...rest } = createMemoryState();
    const replace: typeof keyValues.replace = (key, expected, value, ttlMs) =>
      keyValues.replace(key, expected, value, value === '' ? undefined : ttlMs);
    const { bank, gateway } = await startLine(t, { ...rest, keyValues: { ...keyValues, replace } });
    const write = await newWrite(bank, 'initiation');
    bank.injectFault({ name: 'too-many-requests' }, { times: 1 });
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '429');
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '201');
    assert.equal(outcomeOf(await call(gateway.url, write.call)), '201 replayed');
    assert.equal(write.effectCount(), 1);
  });
});
