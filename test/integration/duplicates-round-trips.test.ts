/**
 * What the ledger costs: at most two round trips to Redis before the bank is called, and one before the TPP is told.
 *
 * An operation on the state is one command to Redis. Commands that are given before any of them is answered are one
 * round trip: nobody waits for one to give the other. What the beat of every second asks is not counted, nor what the
 * other stages do; what is still under way when the TPP is told has kept nobody waiting.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { type CountingState, createCountingState } from '../kit/counting-state.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { printTable } from '../kit/table.ts';
import { newWrite, outcomeOf, type Write, writeNames } from '../kit/writes.ts';

const isOfTheLedger = (operation: string) => / ledger\b/.test(operation) && !operation.startsWith('members');

async function startLine(t: TestContext) {
  const bank = await startBank(t);
  const state = createCountingState(redisStateFactory(await sharedRedisUrl(t))(), isOfTheLedger);
  const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } }, state);
  return { bank, gateway, state };
}

/** The round trips before the bank has the write, and after it has. */
async function tripsOf(gateway: { readonly url: string }, state: CountingState, write: Write) {
  state.reset();
  const reply = await call(gateway.url, write.call);
  const sending = state.roundTrips.findIndex((trip) => trip.some((operation) => operation.startsWith('add')));
  return {
    reply,
    before: state.roundTrips.slice(0, sending + 1),
    after: state.roundTrips.slice(sending + 1),
  };
}

describe('what the ledger asks of Redis', { skip: skipWithoutRedis }, () => {
  const lines: (readonly string[])[] = [];
  const inWords = (trips: readonly (readonly string[])[]) =>
    trips.map((trip) => trip.join(' + ')).join(', then ');

  for (const name of writeNames) {
    test(`for a first ${name} is two round trips before the bank has it, and one before the TPP is told`, async (t) => {
      const { bank, gateway, state } = await startLine(t);
      state.dropResponses('publish', 'remove'); // nobody waits for these
      const { reply, before, after } = await tripsOf(gateway, state, await newWrite(bank, name));
      assert.match(outcomeOf(reply), /^20[12]$/);
      assert.deepEqual(before, [['writeIfAbsent ledger:entry'], ['replace ledger:entry', 'add ledger:open']]);
      assert.deepEqual(after[0], ['replace ledger:entry']);
      assert.deepEqual(after.slice(1).flat().toSorted(), ['publish ledger', 'remove ledger:open']);
      lines.push([name, inWords(before), inWords(after.slice(0, 1)), inWords(after.slice(1))]);
    });
  }

  test('for a replay is two round trips', async (t) => {
    const { bank, gateway, state } = await startLine(t);
    const write = await newWrite(bank, 'initiation');
    await call(gateway.url, write.call);
    state.reset();
    const again = await call(gateway.url, write.call);
    assert.equal(outcomeOf(again), '201 replayed');
    assert.deepEqual(state.roundTrips, [['writeIfAbsent ledger:entry'], ['read ledger:entry']]);
  });

  test('the table of all round trips', (t) => {
    const head = ['write', 'before the bank has it', 'before the TPP is told', 'which nobody waits for'];
    printTable(t, [head, ...lines]);
  });
});
