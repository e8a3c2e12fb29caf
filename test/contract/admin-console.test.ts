/** The console's files: public, without data, and under a strict content security policy. */

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { startAdminApi } from './admin-api-under-test.ts';

const folder = join(import.meta.dirname, '../../src/admin/console');

describe('the files of the console', () => {
  test('are served to everyone, with their content types, the chart library included', async () => {
    const { app } = startAdminApi();
    const own = globSync('*', { cwd: folder });
    assert.ok(own.length > 10);
    for (const file of [...own, 'uplot.js', 'uplot.css']) {
      const { headers } = await supertest(app)
        .get(file === 'index.html' ? '/' : `/${file}`)
        .expect(200);
      assert.match(String(headers['content-type']), /^(text\/(html|css|javascript)|image\/svg\+xml)/, file);
      assert.equal(headers['x-content-type-options'], 'nosniff', file);
    }
  });

  test('have an address for the list of payments and for each payment', async () => {
    const { app } = startAdminApi();
    for (const path of ['/payments', '/payments/sandbox/8f2c1d', '/payments/sandbox/a%2Fb']) {
      const { text, headers } = await supertest(app).get(path).expect(200);
      assert.match(text, /<title>Penstock payments</, path);
      assert.match(String(headers['content-security-policy']), /script-src 'self'/);
    }
    await supertest(app).get('/payments/sandbox').expect(401);
  });

  test('have a policy that allows nothing but scripts, styles, images and calls of their own origin', async () => {
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
    assert.equal(headers['strict-transport-security'], undefined, 'this listener speaks plain HTTP');
    assert.equal(headers['set-cookie'], undefined);
  });

  test('are not served under a foreign host name', async () => {
    await supertest(startAdminApi().app).get('/').set('Host', 'evil.example').expect(421);
  });

  test('are served for GET and HEAD only', async () => {
    await supertest(startAdminApi().app).head('/').expect(200);
    for (const method of ['post', 'put', 'delete'] as const)
      await supertest(startAdminApi().app)[method]('/').expect(401);
  });
});
