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

  test('removes all cached statuses of an environment, with the reason for the audit log', async () => {
    const { call, calls } = fakeAdminClient(204, undefined);
    const { lines, data } = await purgeCache(call, { environment: 'sandbox', reason: 'new certificate' });
    assert.deepEqual(lines, ['Removed all cached statuses in sandbox, on all instances.']);
    assert.deepEqual(data, { purged: { environment: 'sandbox' } });
    assert.deepEqual(calls, [['DELETE', '/status-cache?environment=sandbox&reason=new+certificate']]);
  });
});
