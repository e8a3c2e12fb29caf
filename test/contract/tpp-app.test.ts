/** The TPP systems' application: what the line behind it is given, and what a TPP gets to see of its answer. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { GatewayError } from '../../src/request/errors.ts';
import { transfers } from '../kit/request.ts';
import { bankResponse, requestId, startApp } from './tpp-app-fixture.ts';

describe('the line is given', () => {
  test('the operation, the id as written, the bytes, and the fields that travel on', async () => {
    const { app, received } = startApp(async () => bankResponse({ status: 201 }));

    await supertest(app)
      .post(transfers)
      .set('X-Request-ID', requestId)
      .set('Penstock-Environment', 'production')
      .set('PSU-IP-Address', '192.0.2.1')
      .set('Content-Type', 'application/json')
      .send('{"a" : 1}\r\n')
      .expect(201);

    const [request] = received;
    assert.equal(request?.operation.name, 'initiatePayment');
    assert.equal(request?.operation.path, transfers);
    assert.equal(request?.requestId, requestId);
    assert.equal(request?.requestedEnvironment, 'production');
    assert.equal(request?.body.toString(), '{"a" : 1}\r\n');
    const names = request?.headers.map(([name]) => name.toLowerCase());
    assert.ok(names?.includes('psu-ip-address') && names.includes('x-request-id'));
    for (const name of ['host', 'content-length', 'connection', 'penstock-environment']) {
      assert.ok(!names?.includes(name), name);
    }
  });

  for (const [path, lane, deadlineMs] of [
    [`${transfers}/1/status`, 'status', 1_000],
    [`${transfers}/1`, 'read', 2_000],
  ] as const) {
    test(`the deadline of its lane: ${lane}`, async () => {
      const { app, received } = startApp(async () => bankResponse());
      await supertest(app).get(path).set('X-Request-ID', requestId).expect(200);
      const { operation, arrivedAtMs = 0, deadlineAtMs } = received[0] ?? {};
      assert.equal(operation?.lane, lane);
      assert.equal(deadlineAtMs, arrivedAtMs + deadlineMs);
    });
  }

  test('nothing that the door refuses, which is told with the id of the answer', async () => {
    const { app, received, refused } = startApp(async () => bankResponse());
    const answers = await Promise.all([
      supertest(app).get('/berlingroup/v1/accounts').set('X-Request-ID', requestId).expect(404),
      supertest(app).put(transfers).set('X-Request-ID', requestId).expect(405),
      supertest(app).get(`${transfers}/1`).expect(400),
      supertest(app).post(transfers).set('X-Request-ID', requestId).send('x'.repeat(1_001)).expect(413),
    ]);
    assert.deepEqual(received, []);
    const told = answers.map(({ headers }) => ({
      code: headers['penstock-error'],
      requestId: headers['x-request-id'],
    }));
    const sorted = (list: readonly object[]) => list.map((one) => JSON.stringify(one)).toSorted();
    assert.deepEqual(sorted(refused), sorted(told));
  });
});

describe('a TPP gets', () => {
  test("the line's status, fields and bytes, its own id, and the environment", async () => {
    const body = Buffer.from([0, 1, 2, 255]);
    const headers = [
      ['Content-Type', 'application/octet-stream'],
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['X-Request-ID', 'somebody-elses'],
    ] as const;
    const { app } = startApp(async () => bankResponse({ status: 418, headers, body }));

    const answer = await supertest(app).get(`${transfers}/1`).set('X-Request-ID', requestId).expect(418);

    assert.deepEqual(answer.body, body);
    assert.deepEqual(answer.headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(answer.headers['x-request-id'], requestId);
    assert.equal(answer.headers['penstock-environment'], 'sandbox');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal(answer.headers['content-length'], '4');
  });

  test('a 204 without a body and without a length', async () => {
    const { app } = startApp(async () => bankResponse({ status: 204, headers: [], body: Buffer.alloc(0) }));
    const answer = await supertest(app).delete(`${transfers}/1`).set('X-Request-ID', requestId).expect(204);
    assert.equal(answer.headers['content-length'], undefined);
    assert.equal(answer.text, '');
  });

  test('nothing of a bug but that there is one', async () => {
    const { app } = startApp(async () => {
      throw new TypeError('secret of 192.0.2.1');
    });
    const answer = await supertest(app).get(`${transfers}/1`).set('X-Request-ID', requestId).expect(500);
    assert.equal(answer.headers['penstock-error'], 'INTERNAL');
    assert.equal(answer.headers['x-request-id'], requestId);
    assert.doesNotMatch(`${answer.text}${JSON.stringify(answer.headers)}`, /secret|192|TypeError/);
  });

  test('nothing of the framework: neither its name nor its tags', async () => {
    const { app } = startApp(async () => bankResponse());
    const { headers } = await supertest(app).get(`${transfers}/1`).set('X-Request-ID', requestId);
    for (const name of ['x-powered-by', 'etag', 'server', 'vary'])
      assert.equal(headers[name], undefined, name);
  });
});

describe('a request whose answer cannot be written', () => {
  test('is told as an internal error, and never goes down the line again', async () => {
    const { app, received } = startApp(async () => bankResponse({ headers: [['X-Odd', 'line\r\nbreak']] }));
    const { status } = await supertest(app).post(transfers).set('X-Request-ID', requestId).send('{}');
    assert.equal(status, 500);
    assert.equal(received.length, 1);
  });

  test('is told although its text holds more than ASCII', async () => {
    const { app, received } = startApp(async () => {
      throw new GatewayError('INTERNAL', 'Ein Fehler für 5 €.');
    });
    const { body } = await supertest(app)
      .post(transfers)
      .set('X-Request-ID', requestId)
      .send('{}')
      .expect(500);
    assert.match(body.tppMessages[0].text, /^Ein Fehler für 5 €\./);
    assert.equal(received.length, 1);
  });
});
