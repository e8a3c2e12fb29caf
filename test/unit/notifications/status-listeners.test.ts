import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createStatusListeners } from '../../../src/notifications/status-listeners.ts';
import { GatewayError } from '../../../src/request/errors.ts';

const ignore = () => {};
const isOverloaded = (thrown: unknown) => thrown instanceof GatewayError && thrown.code === 'OVERLOADED';

describe('the open listeners of an instance', () => {
  test('are at most as many as one tenant, and all tenants together, may have', () => {
    const listeners = createStatusListeners(3);
    const { listen, close } = listeners.open('shop', 'wait', 2, ignore);
    listen();
    listeners.open('shop', 'stream', 2, ignore).listen();
    assert.throws(() => listeners.open('shop', 'wait', 2, ignore), isOverloaded, 'the limit of a tenant');
    listeners.open('rival', 'wait', 2, ignore).listen();
    assert.throws(() => listeners.open('rival', 'wait', 2, ignore), isOverloaded, 'the limit of all');
    assert.deepEqual([listeners.count('wait'), listeners.count('stream')], [2, 1]);

    close();
    close();
    assert.equal(listeners.count('wait'), 1);
    listeners.open('shop', 'wait', 2, ignore); // there is room again
    assert.equal(listeners.count('wait'), 1, 'it has not had its first read yet');
    assert.throws(
      () => listeners.open('rival', 'wait', 2, ignore),
      isOverloaded,
      'a second call has closed nothing',
    );
  });

  test('all end when the gateway drains', () => {
    const listeners = createStatusListeners(10);
    const ended: string[] = [];
    const first = listeners.open('shop', 'wait', 10, () => ended.push('first'));
    listeners.open('shop', 'wait', 10, () => ended.push('wait'));
    listeners.open('rival', 'stream', 10, () => ended.push('stream'));
    first.close();
    assert.equal(listeners.isDraining(), false);

    listeners.drain();

    assert.deepEqual(ended, ['wait', 'stream']);
    assert.ok(listeners.isDraining());
  });
});
