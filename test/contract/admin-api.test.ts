/** The admin API: the environment switch, the pre-flight, the audit log, and the roles of operators. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import {
  asOperator,
  asReader,
  bankEnvironments,
  failedPreflight,
  passedPreflight,
  startAdminApi,
} from './admin-api-under-test.ts';

const switchToProduction = { environment: 'production', reason: 'go-live', confirm: 'production' };

const listEnvironments = async ({ app }: ReturnType<typeof startAdminApi>) =>
  (await supertest(app).get('/api/environments').set(asReader).expect(200)).body;
const putActive = ({ app }: ReturnType<typeof startAdminApi>, body: object | string) =>
  supertest(app)
    .put('/api/environments/active')
    .set(asOperator)
    .set('Content-Type', 'application/json')
    .send(body);
const auditRecords = async ({ app }: ReturnType<typeof startAdminApi>) =>
  (await supertest(app).get('/api/audit').set(asReader).expect(200)).body;

describe('GET /api/environments', () => {
  test('lists the configured environments with the active one and its version', async () => {
    assert.deepEqual(await listEnvironments(startAdminApi()), {
      active: 'sandbox',
      version: 1,
      environments: bankEnvironments,
    });
  });

  test('shows the last known active environment while the database is unavailable, and null before the first read', async () => {
    const api = startAdminApi();
    api.database.fail('before');
    assert.deepEqual(await listEnvironments(api), {
      active: null,
      version: null,
      environments: bankEnvironments,
    });
    api.database.recover();
    await listEnvironments(api);
    api.database.fail('before');
    assert.deepEqual(await listEnvironments(api), {
      active: 'sandbox',
      version: 1,
      environments: bankEnvironments,
    });
  });
});

describe('PUT /api/environments/active', () => {
  test('switches, and responds with the report of the pre-flight', async () => {
    const api = startAdminApi();
    const { body } = await putActive(api, switchToProduction).expect(200);
    const switched = { active: 'production', from: 'sandbox', version: 2 };
    assert.deepEqual(body, { ...switched, preflight: passedPreflight, contract: null });
    assert.equal((await listEnvironments(api)).active, 'production');
  });

  test('answers 409 with the report if the pre-flight fails, and 200 if the switch is forced', async () => {
    const api = startAdminApi(failedPreflight);
    const { body } = await putActive(api, switchToProduction).expect(409);
    assert.deepEqual(body, { error: 'Not switched: the pre-flight failed.', preflight: failedPreflight });
    assert.equal((await listEnvironments(api)).active, 'sandbox');
    await putActive(api, { ...switchToProduction, force: true }).expect(200);
    assert.equal((await listEnvironments(api)).active, 'production');
  });

  test('answers 409 if production is not confirmed by its name or the environment does not exist', async () => {
    const api = startAdminApi();
    const { confirm: _, ...unconfirmed } = switchToProduction;
    assert.match((await putActive(api, unconfirmed).expect(409)).body.error, /must be confirmed/);
    assert.match(
      (await putActive(api, { ...switchToProduction, confirm: 'sandbox' }).expect(409)).body.error,
      /must be confirmed/,
    );
    assert.match(
      (await putActive(api, { ...switchToProduction, environment: 'nowhere' }).expect(409)).body.error,
      /unknown environment/,
    );
    assert.equal((await listEnvironments(api)).version, 1);
  });

  test('records every valid request in the audit log, with the name that belongs to the token', async () => {
    const api = startAdminApi();
    await putActive(api, { ...switchToProduction, environment: 'nowhere' });
    await putActive(api, { ...switchToProduction, who: 'somebody else' }).expect(400);
    await putActive(api, switchToProduction);
    const records: readonly Record<string, unknown>[] = await auditRecords(api);
    assert.deepEqual(
      records.map(({ who, outcome }) => [who, outcome]),
      [
        ['olga', 'switched'],
        ['olga', 'refused'],
      ],
    );
  });

  const invalidRequests: Readonly<Record<string, [object | string, RegExp]>> = {
    'has no reason': [{ environment: 'production' }, /^reason: expected a reason, for the audit log$/],
    'has a reason of blanks': [{ ...switchToProduction, reason: ' \n ' }, /^reason: .*audit log/],
    'has a reason of more than 500 characters': [
      { ...switchToProduction, reason: 'x'.repeat(501) },
      /^reason: /,
    ],
    'names no environment': [{ reason: 'go-live' }, /^environment: /],
    'has a force that is not a boolean': [{ ...switchToProduction, force: 'yes' }, /^force: /],
    'has an unknown key': [{ ...switchToProduction, enviroment: 'production' }, /enviroment/],
    'is a list': ['[]', /^body: /],
    'is empty': ['', /^environment: .*; reason: expected a reason/],
    'is not JSON': ['{"environment": production}', /must be JSON/],
    'is a JSON text': ['"production"', /must be JSON/],
    'is larger than 16 kB': [{ ...switchToProduction, reason: 'x'.repeat(17_000) }, /16 KiB/],
  };
  // A reason must not imitate other records in the consoles and terminals of other operators.
  test('removes line ends, terminal control characters and direction marks from a reason', async () => {
    const api = startAdminApi();
    const reason = 'go-live\r\nno 3  refused\u001b[2K\u202Etxt.exe\u2066\u2028\u0085end\u0007';
    await putActive(api, { ...switchToProduction, reason }).expect(200);
    const { body } = await supertest(api.app).get('/api/audit').set(asOperator).expect(200);
    assert.equal(body[0].details.reason, 'go-live no 3  refused [2K txt.exe end');
  });

  for (const [why, [body, sentence]] of Object.entries(invalidRequests)) {
    test(`answers 400 and changes nothing if the request ${why}`, async () => {
      const api = startAdminApi();
      const answer = await putActive(api, body).expect(400);
      assert.match(answer.body.error, sentence);
      assert.equal((await listEnvironments(api)).version, 1);
    });
  }

  test('answers 400 to a form, which a web page could send', async () => {
    const { app } = startAdminApi();
    const sent = supertest(app)
      .put('/api/environments/active')
      .set(asOperator)
      .type('form')
      .send(switchToProduction);
    assert.match((await sent.expect(400)).body.error, /^body: /);
  });

  test('answers 503 with the reason if the database is unavailable, and switches nothing', async () => {
    const api = startAdminApi();
    api.database.fail('before');
    const { body } = await putActive(api, switchToProduction).expect(503);
    assert.equal(body.code, 'STATE_UNAVAILABLE');
    assert.match(body.error, /is unavailable\. .* Why: the test cuts the connection before\.$/);
    api.database.recover();
    assert.equal((await listEnvironments(api)).active, 'sandbox');
  });
});

describe('POST /api/environments/{name}/preflight', () => {
  test('returns the report of a pre-flight and switches nothing; requires the role operate', async () => {
    const { app } = startAdminApi();
    const path = '/api/environments/production/preflight';
    const passed = await supertest(app).post(path).set(asOperator).expect(200);
    assert.deepEqual(passed.body, { ...passedPreflight, contract: null });
    await supertest(app).post(path).set(asReader).expect(403);
    await supertest(app).post('/api/environments/nowhere/preflight').set(asOperator).expect(404);
    const { body } = await supertest(app).get('/api/environments').set(asOperator).expect(200);
    assert.deepEqual([body.active, body.version], ['sandbox', 1]);
  });
});

describe('GET /api/audit', () => {
  test('lists the newest hundred records, newest first, and reports a broken chain', async () => {
    const api = startAdminApi();
    for (let number = 1; number <= 101; number += 1) await putActive(api, switchToProduction);
    const records: readonly { number: number }[] = await auditRecords(api);
    assert.deepEqual([records.length, records[0]?.number, records.at(-1)?.number], [100, 101, 2]);
    const verify = () => supertest(api.app).get('/api/audit/verify').set(asReader).expect(200);
    assert.deepEqual((await verify()).body, { records: 101 });
    await api.database.query('DELETE FROM audit WHERE number = 50');
    assert.deepEqual((await verify()).body, { records: 101, broken: 'record 50 is missing' });
  });

  test('answers 503 if the database is unavailable', async () => {
    const { app, database } = startAdminApi();
    database.fail('before');
    for (const path of ['/api/audit', '/api/audit/verify'])
      await supertest(app).get(path).set(asReader).expect(503);
  });
});

describe('the admin API', () => {
  test('lets operators with the role read see everything and change nothing', async () => {
    const api = startAdminApi();
    const { app } = api;
    for (const path of ['/api/environments', '/api/audit', '/api/audit/verify', '/api/config']) {
      await supertest(app).get(path).set(asReader).expect(200);
    }
    for (const method of ['put', 'post', 'patch', 'delete'] as const) {
      const { body } = await supertest(app)
        [method]('/api/environments/active')
        .set(asReader)
        .send(switchToProduction)
        .expect(403);
      assert.match(body.error, /requires the role operate/);
    }
    assert.equal((await listEnvironments(api)).version, 1);
    assert.deepEqual(await auditRecords(api), []);
  });

  test('answers 404 to operators for every other path, in any spelling', async () => {
    const { app } = startAdminApi();
    for (const path of [
      '/index.html',
      '/console/console.js',
      '/api',
      '/api/',
      '/API/environments',
      '/api/Environments',
      '/api/environments/',
      '/api/../api/audit',
      '/x',
    ]) {
      const { body } = await supertest(app).get(path).set(asOperator).expect(404);
      assert.deepEqual(body, { error: 'Not found.' });
    }
  });

  test('answers 405 with Allow to other methods of a known path, also to OPTIONS', async () => {
    const { app } = startAdminApi();
    for (const [method, path, allow] of [
      ['options', '/api/environments', 'GET, HEAD'],
      ['put', '/api/environments', 'GET, HEAD'],
      ['get', '/api/environments/active', 'PUT'],
      ['options', '/api/in-doubt', 'GET, HEAD, POST'],
      ['options', '/api/in-doubt/some-id', 'POST'],
      ['patch', '/api/circuits/sandbox/write', 'PUT'],
      ['delete', '/health/live', 'GET, HEAD'],
    ] as const) {
      const { headers, body } = await supertest(app)[method](path).set(asOperator).expect(405);
      assert.equal(headers.allow, allow, `${method} ${path}`);
      assert.deepEqual(body, { error: `Method not allowed; allowed: ${allow}.` });
    }
    await supertest(app).options('/api/environments').set(asReader).expect(405);
    await supertest(app).options('/nothing').set(asReader).expect(404);
    await supertest(app).options('/api/environments').expect(401);
  });
});
