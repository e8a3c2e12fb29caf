/** The contract of PubSub. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { State } from '../../src/state/ports.ts';
import type { StateUnderTest, TestStore } from './state-contract.ts';

export function testPubSub({ skip, createStore }: StateUnderTest): void {
  describe('pub/sub', { skip }, () => {
    const startClients = async (t: TestContext) => {
      const store = await createStore(t);
      return { store, one: await store.client(), other: await store.client() };
    };

    test('a message reaches the subscribers of all instances, including the sender', async (t) => {
      const { store, one, other } = await startClients(t);
      const [here, there] = [
        await startSubscriber(store, one, 'channel'),
        await startSubscriber(store, other, 'channel'),
      ];
      const sent = Array.from({ length: 50 }, (_, index) => `message ${index} €\0`);
      for (const message of sent) await one.pubsub.publish('channel', message);
      await store.until(5_000, 'all messages arrive', () => here.length >= 50 && there.length >= 50);
      assert.deepEqual(here.toSorted(), sent.toSorted());
      assert.deepEqual(there.toSorted(), sent.toSorted());
    });

    test('publish does not call subscribers synchronously', async (t) => {
      const { store, one } = await startClients(t);
      const received = await startSubscriber(store, one, 'channel');
      const published = one.pubsub.publish('channel', 'message');
      assert.deepEqual(received, []);
      await published;
      await store.until(5_000, 'the message arrives', () => received.length === 1);
    });

    test('an unsubscribed listener receives no more messages, while other listeners do', async (t) => {
      const { store, one } = await startClients(t);
      const received: string[] = [];
      const listener = (message: string) => void (message !== probe && received.push(message));
      const unsubscribes = [
        one.pubsub.subscribe('channel', listener),
        one.pubsub.subscribe('channel', listener),
      ];
      const others = await startSubscriber(store, one, 'channel');

      unsubscribes[0]?.();
      unsubscribes[0]?.();
      await one.pubsub.publish('channel', 'to the second');
      await store.until(5_000, 'the message arrives', () => others.length === 1);
      assert.deepEqual(received, ['to the second']);

      unsubscribes[1]?.();
      await one.pubsub.publish('channel', 'to the others');
      await store.until(5_000, 'the message arrives', () => others.length === 2);
      assert.deepEqual(received, ['to the second']);
    });

    test('a new listener receives messages after the last one has unsubscribed', async (t) => {
      const { store, one, other } = await startClients(t);
      const first: string[] = [];
      one.pubsub.subscribe('channel', (message) => first.push(message))();
      const second = await startSubscriber(store, one, 'channel');
      await other.pubsub.publish('channel', 'message');
      await store.until(5_000, 'the message arrives', () => second.length === 1);
      assert.deepEqual(first, []);
    });

    test('a message reaches only its own channel and prefix', async (t) => {
      const { store, one } = await startClients(t);
      const foreign = await store.otherClient();
      const received = [
        await startSubscriber(store, one, 'channel'),
        await startSubscriber(store, one, 'other'),
        await startSubscriber(store, foreign, 'channel'),
      ];
      await one.pubsub.publish('channel', 'ours');
      await foreign.pubsub.publish('channel', 'theirs');
      await one.pubsub.publish('other', 'other');
      await store.until(5_000, 'all messages arrive', () =>
        received.every((messages) => messages.length > 0),
      );
      assert.deepEqual(received, [['ours'], ['other'], ['theirs']]);
    });
  });
}

const probe = 'probe';

/** The messages of a channel; returns when the subscription is in effect. */
async function startSubscriber(store: TestStore, state: State, channel: string): Promise<readonly string[]> {
  const received: string[] = [];
  let isSubscribed = false;
  state.pubsub.subscribe(channel, (message) => {
    if (message === probe) isSubscribed = true;
    else received.push(message);
  });
  await store.until(5_000, `the subscription to ${channel} is in effect`, async () => {
    await state.pubsub.publish(channel, probe);
    return isSubscribed;
  });
  return received;
}
