/** The operators' page: open, without data, and under a policy that lets nothing foreign run. */

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { startAdminApi } from './admin-api-under-test.ts';

const folder = join(import.meta.dirname, '../../src/admin/console');

describe('the console', () => {
  test('is served with all its files to everybody, as what they are', async () => {
    const { app } = startAdminApi();
    const files = globSync('*', { cwd: folder });
    assert.ok(files.length > 10);
    for (const file of files) {
      const { headers } = await supertest(app)
        .get(file === 'index.html' ? '/' : `/${file}`)
        .expect(200);
      assert.match(String(headers['content-type']), /^(text\/(html|css|javascript)|image\/svg\+xml)/, file);
      assert.equal(headers['x-content-type-options'], 'nosniff', file);
    }
  });

  test('may load and call nothing but itself, and nobody may frame it', async () => {
    const { headers } = await supertest(startAdminApi().app).get('/').expect(200);
    const policy = String(headers['content-security-policy']).split(';').toSorted();
    assert.deepEqual(policy, [
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
      "trusted-types 'none'",
    ]);
    assert.equal(headers['x-frame-options'], 'DENY');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['strict-transport-security'], undefined, 'this door speaks plain HTTP');
    assert.equal(headers['set-cookie'], undefined);
  });

  test('is not served under a name of somebody else', async () => {
    await supertest(startAdminApi().app).get('/').set('Host', 'evil.example').expect(421);
  });

  test('answers only those who look', async () => {
    for (const method of ['post', 'put', 'delete'] as const)
      await supertest(startAdminApi().app)[method]('/').expect(401);
  });
});
