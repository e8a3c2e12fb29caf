import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createRedisSubscriber } from '../../../src/state/redis-subscriber.ts';

/** A connection that writes down what it is asked, and answers as told. */
class FakeConnection extends EventEmitter {
  readonly asked: string[] = [];
  refuses = false;
  async connect() {
    this.asked.push('connect');
  }
  async subscribe(...channels: string[]) {
    this.asked.push(`subscribe ${channels.join(' ')}`);
    if (this.refuses) throw new Error('refused');
  }
  async unsubscribe(...channels: string[]) {
    this.asked.push(`unsubscribe ${channels.join(' ')}`);
  }
  async ping() {
    this.asked.push('ping');
    if (this.refuses) throw new Error('silent');
  }
  disconnect() {
    this.asked.push('disconnect');
  }
}

function listeningTo(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const connections: FakeConnection[] = [];
  const listening = createRedisSubscriber(() => {
    const connection = new FakeConnection();
    connections.push(connection);
    return connection;
  });
  const last = () => connections.at(-1) ?? assert.fail('no connection');
  return { listening, connections, last, pass: (ms: number) => t.mock.timers.tick(ms) };
}

describe('the connection that listens', () => {
  test('is made when somebody listens first, and once', (t) => {
    const { listening, connections } = listeningTo(t);
    assert.equal(connections.length, 0);
    listening.subscribe('one', () => {});
    listening.subscribe('two', () => {});
    assert.equal(connections.length, 1);
  });

  test('subscribes to what is listened to when it is ready, and to more as it comes', (t) => {
    const { listening, last } = listeningTo(t);
    listening.subscribe('one', () => {});
    listening.subscribe('two', () => {});
    last().emit('ready');
    const stop = listening.subscribe('three', () => {});
    listening.subscribe('three', () => {})();
    stop();
    assert.deepEqual(last().asked, ['connect', 'subscribe one two', 'subscribe three', 'unsubscribe three']);
  });

  test('passes each message to who listens to its channel', (t) => {
    const { listening, last } = listeningTo(t);
    const heard: string[] = [];
    listening.subscribe('one', (message) => heard.push(message));
    last().emit('message', 'one', 'yes');
    last().emit('message', 'two', 'no');
    assert.deepEqual(heard, ['yes']);
  });

  test('is replaced when it is lost, later and later, and all is subscribed to again', async (t) => {
    const { listening, connections, last, pass } = listeningTo(t);
    listening.subscribe('one', () => {});
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
    assert.deepEqual(last().asked, ['connect', 'subscribe one']);

    last().emit('end');
    pass(50);
    assert.deepEqual(last().asked, ['connect'], 'the delay begins anew');
  });

  test('is given up when it refuses or stays silent', async (t) => {
    const { listening, last, pass } = listeningTo(t);
    listening.subscribe('one', () => {});
    pass(500);
    assert.deepEqual(last().asked, ['connect'], 'no beat before it is ready');
    last().emit('ready');
    last().refuses = true;
    pass(500);
    await setImmediate();
    assert.deepEqual(last().asked.slice(-2), ['ping', 'disconnect']);
  });

  test('is not asked for without a pause if it connects and then refuses', async (t) => {
    const { listening, connections, last, pass } = listeningTo(t);
    listening.subscribe('one', () => {});
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

  test('is not made again after the end', (t) => {
    const { listening, connections, last, pass } = listeningTo(t);
    listening.subscribe('one', () => {});
    last().emit('ready');
    listening.close();
    last().emit('end');
    pass(10_000);
    listening.subscribe('two', () => {});
    assert.equal(connections.length, 1);
    assert.equal(last().asked.at(-1), 'disconnect');
  });
});
