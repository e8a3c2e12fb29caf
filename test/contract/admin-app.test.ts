/** The operators' application, as whoever runs the process asks it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import express from 'express';
import supertest from 'supertest';
import { createAdminApp, type Readiness } from '../../src/admin/admin-app.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { asOperator, startAdminApi } from './admin-api-under-test.ts';

const appThat = (readiness: () => Readiness) =>
  createAdminApp(
    { host: '127.0.0.1', operators: [], readiness, metrics: createMetrics(), log: () => {} },
    express.Router(),
  );

const serving = () => ({ ready: true, reasons: [] });
const starting = () => ({ ready: false, reasons: ['not serving'] });

describe('/health/live', () => {
  for (const [when, readiness] of Object.entries({ 'can serve': serving, 'cannot serve': starting })) {
    test(`is 200 as long as the process runs, when it ${when}`, async () => {
      const { body } = await supertest(appThat(readiness)).get('/health/live').expect(200);
      assert.deepEqual(body, { status: 'live' });
    });
  }
});

describe('/health/ready', () => {
  test('is 200 when the gateway can serve', async () => {
    const { body } = await supertest(appThat(serving)).get('/health/ready').expect(200);
    assert.deepEqual(body, { status: 'ready', reasons: [] });
  });

  test('is 503 and says why before it can, and after it stopped', async () => {
    let ready = false;
    const app = appThat(() => (ready ? serving() : starting()));
    const { body } = await supertest(app).get('/health/ready').expect(503);
    assert.deepEqual(body, { status: 'not ready', reasons: ['not serving'] });
    ready = true;
    await supertest(app).get('/health/ready').expect(200);
    ready = false;
    await supertest(app).get('/health/ready').expect(503);
  });
});

describe('the application', () => {
  test('says of a path that cannot be decoded that it is the path', async () => {
    const { app } = startAdminApi();
    for (const path of ['/api/decisions/%E0%A4%A', '/api/in-doubt/%FF', '/api/environments/%/preflight']) {
      const method = path.includes('decisions') ? 'get' : 'post';
      const { body } = await supertest(app)[method](path).set(asOperator).expect(400);
      assert.deepEqual(body, { error: 'The address cannot be read.' }, path);
    }
  });

  test('lets nobody keep or guess its answers', async () => {
    for (const path of ['/health/live', '/health/ready', '/elsewhere']) {
      const { headers } = await supertest(appThat(serving)).get(path);
      assert.equal(headers['cache-control'], 'no-store', path);
      assert.equal(headers['x-content-type-options'], 'nosniff', path);
      assert.equal(headers['x-powered-by'], undefined, path);
    }
  });

  test('lets nobody without a token any further, however it is spelled', async () => {
    const app = appThat(serving);
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
      await supertest(app).get(path).expect(401);
    }
    await supertest(app).post('/health/live').expect(401);
  });
});
