/** The messages about changed statuses, which waiting reads are woken by. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createStatusEvents } from '../../../src/status-cache/status-events.ts';
import {
  authorisationRead,
  bankResponse,
  bankStatusResponse,
  cancellation,
  createCacheInstance,
  paymentRead,
  statusRead,
} from './cache-instance.ts';

const uncached = { headers: [['Cache-Control', 'no-cache']] } as const;

/** An instance, and what it publishes. */
function startInstance() {
  const state = createMemoryState();
  let response = bankStatusResponse('ACTC');
  const instance = createCacheInstance(state, async () => response);
  const published: string[] = [];
  createStatusEvents(state.pubsub).subscribe(({ what, tenantId }) => published.push(`${what} ${tenantId}`));
  return {
    async send(request: Parameters<typeof instance.send>[0]) {
      await instance.send(request);
      await setImmediate(); // messages are delivered in the next turn of the event loop
    },
    published,
    respond(next: typeof response) {
      response = next;
    },
  };
}

describe('a message about a status', () => {
  test('is published when a status read shows another status than the recorded one, with the tenant of the read', async () => {
    const { send, respond, published } = startInstance();
    await send(statusRead());
    await send(statusRead(uncached));
    await send(statusRead({ tenant: 'rival', ...uncached }));
    assert.deepEqual(published, [], 'the first status is no change, and neither is the same one');

    respond(bankStatusResponse('ACSC'));
    await send(statusRead({ tenant: 'rival', ...uncached }));
    assert.deepEqual(published, ['changed rival']);
    await send(statusRead(uncached));
    assert.deepEqual(published, ['changed rival'], 'the change is known');
  });

  test('is published when a read of the payment shows the change', async () => {
    const { send, respond, published } = startInstance();
    await send(paymentRead());
    assert.deepEqual(published, []);
    respond(bankStatusResponse('ACSC'));
    await send(paymentRead());
    assert.deepEqual(published, ['changed shop']);
  });

  test('is published after a write, and after an authorisation has ended', async () => {
    const { send, respond, published } = startInstance();
    respond(bankResponse(204));
    await send(cancellation());
    assert.deepEqual(published, ['written shop']);
    const json = ['Content-Type', 'application/json'] as const;
    respond(bankResponse(200, [json], '{"scaStatus":"finalised"}'));
    await send(authorisationRead());
    await send(authorisationRead());
    assert.deepEqual(published, ['written shop', 'written shop']);
  });

  test('names neither the payment nor its status', async () => {
    const state = createMemoryState();
    const messages: string[] = [];
    state.pubsub.subscribe('status-events', (message) => messages.push(message));
    let response = bankStatusResponse('ACTC');
    const { send } = createCacheInstance(state, async () => response);
    await send(statusRead({ payment: 'secret-id' }));
    response = bankStatusResponse('ACSC');
    await send(statusRead({ payment: 'secret-id', ...uncached }));
    await setImmediate();
    assert.equal(messages.length, 1);
    assert.doesNotMatch(messages.join(), /secret-id|ACSC|ACTC/);
  });
});
