/** What Announcements promise, wherever they travel. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { State } from '../../src/state/ports.ts';
import type { StateUnderTest, TestStore } from './state-contract.ts';

/** Puts the pubsub of a kind of state to the test. */
export function testPubSub({ skip, store }: StateUnderTest): void {
  describe('pubsub', { skip }, () => {
    const twoClients = async (t: TestContext) => {
      const place = await store(t);
      return { place, one: await place.client(), other: await place.client() };
    };

    test('a message reaches all instances that listen, its sender too', async (t) => {
      const { place, one, other } = await twoClients(t);
      const [here, there] = [
        await startSubscriber(place, one, 'news'),
        await startSubscriber(place, other, 'news'),
      ];
      const sent = Array.from({ length: 50 }, (_, index) => `message ${index} €\0`);
      for (const message of sent) await one.pubsub.publish('news', message);
      await place.until(5_000, 'all have come', () => here.length >= 50 && there.length >= 50);
      assert.deepEqual(here.toSorted(), sent.toSorted());
      assert.deepEqual(there.toSorted(), sent.toSorted());
    });

    test('publish does not call the listeners itself', async (t) => {
      const { place, one } = await twoClients(t);
      const heard = await startSubscriber(place, one, 'news');
      const published = one.pubsub.publish('news', 'message');
      assert.deepEqual(heard, []);
      await published;
      await place.until(5_000, 'it has come', () => heard.length === 1);
    });

    test('who has stopped listening hears nothing any more, and others go on', async (t) => {
      const { place, one } = await twoClients(t);
      const stopped: string[] = [];
      const listener = (message: string) => void (message !== probe && stopped.push(message));
      const stops = [one.pubsub.subscribe('news', listener), one.pubsub.subscribe('news', listener)];
      const others = await startSubscriber(place, one, 'news');

      stops[0]?.();
      stops[0]?.();
      await one.pubsub.publish('news', 'to the second');
      await place.until(5_000, 'it has come', () => others.length === 1);
      assert.deepEqual(stopped, ['to the second']);

      stops[1]?.();
      await one.pubsub.publish('news', 'to the others');
      await place.until(5_000, 'it has come', () => others.length === 2);
      assert.deepEqual(stopped, ['to the second']);
    });

    test('who listens again after everybody stopped hears again', async (t) => {
      const { place, one, other } = await twoClients(t);
      const first: string[] = [];
      one.pubsub.subscribe('news', (message) => first.push(message))();
      const again = await startSubscriber(place, one, 'news');
      await other.pubsub.publish('news', 'message');
      await place.until(5_000, 'it has come', () => again.length === 1);
      assert.deepEqual(first, []);
    });

    test('channels of other names, and of other prefixes, are others', async (t) => {
      const { place, one } = await twoClients(t);
      const stranger = await place.otherClient();
      const heard = [
        await startSubscriber(place, one, 'news'),
        await startSubscriber(place, one, 'other'),
        await startSubscriber(place, stranger, 'news'),
      ];
      await one.pubsub.publish('news', 'ours');
      await stranger.pubsub.publish('news', 'theirs');
      await one.pubsub.publish('other', 'other');
      await place.until(5_000, 'all have come', () => heard.every((messages) => messages.length > 0));
      assert.deepEqual(heard, [['ours'], ['other'], ['theirs']]);
    });
  });
}

const probe = 'is it on?';

/** The messages heard on a channel; comes back when they are heard for certain. */
async function startSubscriber(place: TestStore, state: State, channel: string): Promise<readonly string[]> {
  const heard: string[] = [];
  let on = false;
  state.pubsub.subscribe(channel, (message) => {
    if (message === probe) on = true;
    else heard.push(message);
  });
  await place.until(5_000, `${channel} is heard`, async () => {
    await state.pubsub.publish(channel, probe);
    return on;
  });
  return heard;
}
