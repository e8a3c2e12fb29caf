/** The operators' API: what is asked, what is answered, and who may do what. */

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

const order = { environment: 'production', reason: 'go-live', confirm: 'production' };

const show = async ({ app }: ReturnType<typeof startAdminApi>) =>
  (await supertest(app).get('/api/environments').set(asReader).expect(200)).body;
const put = ({ app }: ReturnType<typeof startAdminApi>, body: object | string) =>
  supertest(app)
    .put('/api/environments/active')
    .set(asOperator)
    .set('Content-Type', 'application/json')
    .send(body);
const audit = async ({ app }: ReturnType<typeof startAdminApi>) =>
  (await supertest(app).get('/api/audit').set(asReader).expect(200)).body;

describe('GET /api/environments', () => {
  test('tells the active one, its version, and all that are configured', async () => {
    assert.deepEqual(await show(startAdminApi()), {
      active: 'sandbox',
      version: 1,
      environments: bankEnvironments,
    });
  });

  test('tells what was last known while the state is out of reach, and nothing before that', async () => {
    const operators = startAdminApi();
    operators.state.fail();
    assert.deepEqual(await show(operators), { active: null, version: null, environments: bankEnvironments });
    operators.state.recover();
    await show(operators);
    operators.state.fail();
    assert.deepEqual(await show(operators), {
      active: 'sandbox',
      version: 1,
      environments: bankEnvironments,
    });
  });
});

describe('PUT /api/environments/active', () => {
  test('switches, and answers with the report of the pre-flight', async () => {
    const operators = startAdminApi();
    const { body } = await put(operators, order).expect(200);
    assert.deepEqual(body, { active: 'production', from: 'sandbox', version: 2, preflight: passedPreflight });
    assert.equal((await show(operators)).active, 'production');
  });

  test('is 409 with the report if the pre-flight fails, and 200 if that is forced', async () => {
    const operators = startAdminApi(failedPreflight);
    const { body } = await put(operators, order).expect(409);
    assert.deepEqual(body, { error: 'Not switched: the pre-flight failed.', preflight: failedPreflight });
    assert.equal((await show(operators)).active, 'sandbox');
    await put(operators, { ...order, force: true }).expect(200);
    assert.equal((await show(operators)).active, 'production');
  });

  test('is 409 if production is not confirmed by its name, or there is no such environment', async () => {
    const operators = startAdminApi();
    const { confirm: _, ...unconfirmed } = order;
    assert.match((await put(operators, unconfirmed).expect(409)).body.error, /must be confirmed/);
    assert.match(
      (await put(operators, { ...order, confirm: 'sandbox' }).expect(409)).body.error,
      /must be confirmed/,
    );
    assert.match(
      (await put(operators, { ...order, environment: 'nowhere' }).expect(409)).body.error,
      /no environment/,
    );
    assert.equal((await show(operators)).version, 1);
  });

  test('leaves an audit record of every order, with the name that belongs to the token', async () => {
    const operators = startAdminApi();
    await put(operators, { ...order, environment: 'nowhere' });
    await put(operators, { ...order, who: 'somebody else' }).expect(400);
    await put(operators, order);
    const records: readonly Record<string, unknown>[] = await audit(operators);
    assert.deepEqual(
      records.map(({ who, outcome }) => [who, outcome]),
      [
        ['olga', 'switched'],
        ['olga', 'refused'],
      ],
    );
  });

  const faulty: Readonly<Record<string, [object | string, RegExp]>> = {
    'has no reason': [{ environment: 'production' }, /^reason: expected a reason, for the audit log$/],
    'has a reason of blanks': [{ ...order, reason: ' \n ' }, /^reason: .*audit log/],
    'has a reason of more than 500 characters': [{ ...order, reason: 'x'.repeat(501) }, /^reason: /],
    'names no environment': [{ reason: 'go-live' }, /^environment: /],
    'forces by something that is not true or false': [{ ...order, force: 'yes' }, /^force: /],
    'has something else in it': [{ ...order, enviroment: 'production' }, /enviroment/],
    'is a list': ['[]', /^body: /],
    'is empty': ['', /^environment: .*; reason: expected a reason/],
    'is no JSON': ['{"environment": production}', /must be JSON/],
    'is a JSON text': ['"production"', /must be JSON/],
    'is larger than 16 kB': [{ ...order, reason: 'x'.repeat(17_000) }, /16 kB/],
  };
  // Whoever may switch has told the others, in their terminals and consoles, what they had not done.
  test('keeps a reason on its line, and leaves out of it what turns text around or speaks to a terminal', async () => {
    const operators = startAdminApi();
    const reason = 'go-live\r\nno 3  refused\u001b[2K\u202Etxt.exe\u2066\u2028\u0085end\u0007';
    await put(operators, { ...order, reason }).expect(200);
    const { body } = await supertest(operators.app).get('/api/audit').set(asOperator).expect(200);
    assert.equal(body[0].details.reason, 'go-live no 3  refused [2K txt.exe end');
  });

  for (const [why, [body, sentence]] of Object.entries(faulty)) {
    test(`is 400 and changes nothing if the order ${why}`, async () => {
      const operators = startAdminApi();
      const answer = await put(operators, body).expect(400);
      assert.match(answer.body.error, sentence);
      assert.equal((await show(operators)).version, 1);
    });
  }

  test('is 400 if the order comes as a form, as a web page could send it', async () => {
    const { app } = startAdminApi();
    const sent = supertest(app).put('/api/environments/active').set(asOperator).type('form').send(order);
    assert.match((await sent.expect(400)).body.error, /^body: /);
  });

  test('is 503 if the state is out of reach', async () => {
    const operators = startAdminApi();
    operators.state.fail();
    const { body } = await put(operators, order).expect(503);
    assert.equal(body.code, 'STATE_UNAVAILABLE');
    assert.match(body.error, /cannot be reached/);
  });
});

describe('GET /api/audit', () => {
  test('shows the newest hundred records, newest first, and verifies the chain', async () => {
    const operators = startAdminApi();
    for (let number = 1; number <= 101; number += 1) await put(operators, order);
    const records: readonly { number: number }[] = await audit(operators);
    assert.deepEqual([records.length, records[0]?.number, records.at(-1)?.number], [100, 101, 2]);
    const verify = () => supertest(operators.app).get('/api/audit/verify').set(asReader).expect(200);
    assert.deepEqual((await verify()).body, { records: 101 });
    await operators.state.keyValues.remove('audit:50');
    assert.deepEqual((await verify()).body, { records: 101, broken: 'record 50 is missing or unreadable' });
  });

  test('is 503 if the state is out of reach', async () => {
    const { app, state } = startAdminApi();
    state.fail();
    for (const path of ['/api/audit', '/api/audit/verify'])
      await supertest(app).get(path).set(asReader).expect(503);
  });
});

describe('operators', () => {
  test('with the role "read" may look at everything and change nothing', async () => {
    const operators = startAdminApi();
    const { app } = operators;
    for (const path of ['/api/environments', '/api/audit', '/api/audit/verify', '/api/config']) {
      await supertest(app).get(path).set(asReader).expect(200);
    }
    for (const method of ['put', 'post', 'patch', 'delete'] as const) {
      const { body } = await supertest(app)
        [method]('/api/environments/active')
        .set(asReader)
        .send(order)
        .expect(403);
      assert.match(body.error, /may look/);
    }
    assert.equal((await show(operators)).version, 1);
    assert.deepEqual(await audit(operators), []);
  });

  test('find nothing elsewhere, in any spelling', async () => {
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
      assert.deepEqual(body, { error: 'There is nothing here.' });
    }
    await supertest(app).put('/api/environments').set(asOperator).send(order).expect(404);
    await supertest(app).get('/api/environments/active').set(asOperator).expect(404);
  });
});
