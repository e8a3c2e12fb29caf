import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createRedisSubscriber } from '../../../src/state/redis-subscriber.ts';

/** A connection that the test makes ready and ends by its events. */
class FakeConnection extends EventEmitter {
  readonly channels = new Set<string>();
  refuses = false;
  isDisconnected = false;
  async connect() {}
  async subscribe(...channels: string[]) {
    if (this.refuses) throw new Error('refused');
    for (const channel of channels) this.channels.add(channel);
  }
  async unsubscribe(...channels: string[]) {
    for (const channel of channels) this.channels.delete(channel);
  }
  async ping() {
    if (this.refuses) throw new Error('no answer');
  }
  disconnect() {
    this.isDisconnected = true;
  }
}

function startSubscriber(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const connections: FakeConnection[] = [];
  const subscriber = createRedisSubscriber(() => {
    const connection = new FakeConnection();
    connections.push(connection);
    return connection;
  });
  const last = () => connections.at(-1) ?? assert.fail('no connection');
  return { subscriber, connections, last, pass: (ms: number) => t.mock.timers.tick(ms) };
}

describe('the Redis subscriber', () => {
  test('connects once, at the first subscription', (t) => {
    const { subscriber, connections } = startSubscriber(t);
    assert.equal(connections.length, 0);
    subscriber.subscribe('one', () => {});
    subscriber.subscribe('two', () => {});
    assert.equal(connections.length, 1);
  });

  test('subscribes to all channels when it is ready, and follows later changes', (t) => {
    const { subscriber, last } = startSubscriber(t);
    subscriber.subscribe('one', () => {});
    subscriber.subscribe('two', () => {});
    last().emit('ready');
    assert.deepEqual([...last().channels], ['one', 'two']);
    const unsubscribe = subscriber.subscribe('three', () => {});
    subscriber.subscribe('three', () => {})();
    assert.deepEqual([...last().channels], ['one', 'two', 'three'], 'it still has a subscriber');
    unsubscribe();
    assert.deepEqual([...last().channels], ['one', 'two']);
  });

  test('delivers a message only to the subscribers of its channel', (t) => {
    const { subscriber, last } = startSubscriber(t);
    const received: string[] = [];
    subscriber.subscribe('one', (message) => received.push(message));
    last().emit('message', 'one', 'yes');
    last().emit('message', 'two', 'no');
    assert.deepEqual(received, ['yes']);
  });

  test('reconnects after growing delays, and subscribes to all channels again', async (t) => {
    const { subscriber, connections, last, pass } = startSubscriber(t);
    subscriber.subscribe('one', () => {});
    for (const delayMs of [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 500, 500]) {
      const before = connections.length;
      last().emit('end');
      pass(delayMs - 1);
      assert.equal(connections.length, before);
      pass(1);
      assert.equal(connections.length, before + 1);
    }
    last().emit('ready');
    await setImmediate();
    assert.deepEqual([...last().channels], ['one']);

    const before = connections.length;
    last().emit('end');
    pass(50);
    assert.equal(connections.length, before + 1, 'the delay starts at 50 ms again');
  });

  test('drops a connection whose ping fails', async (t) => {
    const { subscriber, last, pass } = startSubscriber(t);
    subscriber.subscribe('one', () => {});
    last().refuses = true;
    pass(500);
    await setImmediate();
    assert.equal(last().isDisconnected, false, 'it is not pinged before it is ready');
    last().refuses = false;
    last().emit('ready');
    last().refuses = true;
    pass(500);
    await setImmediate();
    assert.equal(last().isDisconnected, true);
  });

  test('keeps the delay if connections are established and then refuse to subscribe', async (t) => {
    const { subscriber, connections, last, pass } = startSubscriber(t);
    subscriber.subscribe('one', () => {});
    for (const delayMs of [50, 100, 150]) {
      last().refuses = true;
      last().emit('ready');
      await setImmediate();
      last().emit('end');
      pass(delayMs - 1);
      const before = connections.length;
      pass(1);
      assert.equal(connections.length, before + 1);
    }
  });

  test('does not connect again after it is closed', (t) => {
    const { subscriber, connections, last, pass } = startSubscriber(t);
    subscriber.subscribe('one', () => {});
    last().emit('ready');
    subscriber.close();
    last().emit('end');
    pass(10_000);
    subscriber.subscribe('two', () => {});
    assert.equal(connections.length, 1);
    assert.equal(last().isDisconnected, true);
  });
});
