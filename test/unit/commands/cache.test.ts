import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { purgeCache } from '../../../src/commands/cache.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

describe('penstock cache purge', () => {
  test('removes the cached status of one payment', async () => {
    const { call, calls } = fakeAdminClient(204, undefined);
    const { lines } = await purgeCache(call, { payment: 'a=1&b', environment: 'sandbox' });
    assert.deepEqual(lines, ['Removed the cached status of payment a=1&b in sandbox, on all instances.']);
    assert.deepEqual(calls, [['DELETE', '/status-cache?payment=a%3D1%26b&environment=sandbox']]);
  });

  test('removes all cached statuses without a payment', async () => {
    const { call, calls } = fakeAdminClient(204, undefined);
    assert.deepEqual((await purgeCache(call, {})).lines, ['Removed all cached statuses, on all instances.']);
    assert.deepEqual(calls, [['DELETE', '/status-cache']]);
  });

  test('refuses an environment without a payment: the gateway would ignore it', async () => {
    const { call, calls } = fakeAdminClient(204, undefined);
    await assert.rejects(purgeCache(call, { environment: 'sandbox' }), { exitCode: 64 });
    assert.deepEqual(calls, []);
  });
});
