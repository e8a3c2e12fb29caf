/** The admin listener for callers without a token: health, unknown paths, response headers. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import type { Readiness } from '../../src/admin/dashboard-snapshot.ts';
import { asOperator, passedPreflight, startAdminApi } from './admin-api-under-test.ts';

const ready: Readiness = { ready: true, reasons: [] };
const starting: Readiness = { ready: false, reasons: ['not serving'] };

const appWith = (readiness = ready) => startAdminApi(passedPreflight, { readiness: () => readiness }).app;

describe('GET /health/live', () => {
  for (const [state, readiness] of Object.entries({ ready, 'not ready': starting })) {
    test(`answers 200 while the process runs, also if the instance is ${state}`, async () => {
      const { body } = await supertest(appWith(readiness)).get('/health/live').expect(200);
      assert.deepEqual(body, { status: 'live' });
    });
  }
});

describe('GET /health/ready', () => {
  test('answers 200 if the instance can take requests', async () => {
    const { body } = await supertest(appWith(ready)).get('/health/ready').expect(200);
    assert.deepEqual(body, { status: 'ready', reasons: [] });
  });

  test('answers 503 with the reasons while the instance starts or stops', async () => {
    let readiness = starting;
    const { app } = startAdminApi(passedPreflight, { readiness: () => readiness });
    const { body } = await supertest(app).get('/health/ready').expect(503);
    assert.deepEqual(body, { status: 'not ready', reasons: ['not serving'] });
    readiness = ready;
    await supertest(app).get('/health/ready').expect(200);
    readiness = starting;
    await supertest(app).get('/health/ready').expect(503);
  });
});

describe('the admin application', () => {
  test('answers 400 to a path with malformed percent-encoding', async () => {
    const { app } = startAdminApi();
    for (const path of ['/api/decisions/%E0%A4%A', '/api/in-doubt/%FF', '/api/environments/%/preflight']) {
      const method = path.includes('decisions') ? 'get' : 'post';
      const { body } = await supertest(app)[method](path).set(asOperator).expect(400);
      assert.deepEqual(body, { error: 'The URL is malformed.' }, path);
    }
  });

  test('forbids caching and content sniffing of every response, and does not name Express', async () => {
    for (const path of ['/health/live', '/health/ready', '/elsewhere']) {
      const { headers } = await supertest(appWith()).get(path);
      assert.equal(headers['cache-control'], 'no-store', path);
      assert.equal(headers['x-content-type-options'], 'nosniff', path);
      assert.equal(headers['x-powered-by'], undefined, path);
    }
  });

  test('requires a token for every path except the public ones, in any spelling', async () => {
    for (const path of [
      '/index.html',
      '/Console.js',
      '/console.js/',
      '/health',
      '/health/live/',
      '/Health/live',
      '/health//live',
      '/%2e/health',
      '/berlingroup/v1/payments/p',
    ]) {
      await supertest(appWith()).get(path).expect(401);
    }
    await supertest(appWith()).post('/health/live').expect(401);
  });
});
