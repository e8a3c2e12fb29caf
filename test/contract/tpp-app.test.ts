/** The application of the public API: what it passes to the pipeline, and how it sends responses and errors. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as sendRequest } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import type { CheckQuota } from '../../src/http/quota.ts';
import { GatewayError } from '../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../src/request/messages.ts';
import type { Handler } from '../../src/request/stage.ts';
import { transfersPath } from '../kit/request.ts';
import { until, within } from '../kit/within.ts';
import { bankResponse, requestId, startApp } from './tpp-app-fixture.ts';

describe('the public API', () => {
  test('passes the operation, the original X-Request-ID, the body bytes and the end-to-end fields to the pipeline', async () => {
    const { app, received } = startApp(async () => bankResponse({ status: 201 }));

    await supertest(app)
      .post(transfersPath)
      .set('X-Request-ID', requestId)
      .set('Penstock-Environment', 'production')
      .set('PSU-IP-Address', '192.0.2.1')
      .set('Content-Type', 'application/json')
      .send('{"a" : 1}\r\n')
      .expect(201);

    const [request] = received;
    assert.equal(request?.operation.name, 'initiatePayment');
    assert.equal(request?.operation.path, transfersPath);
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
    [`${transfersPath}/1/status`, 'status', 1_000],
    [`${transfersPath}/1`, 'read', 2_000],
  ] as const) {
    test(`sets the deadline of the lane ${lane}`, async () => {
      const { app, received } = startApp(async () => bankResponse());
      await supertest(app).get(path).set('X-Request-ID', requestId).expect(200);
      const { operation, arrivedAtMs = 0, deadlineAtMs } = received[0] ?? {};
      assert.equal(operation?.lane, lane);
      assert.equal(deadlineAtMs, arrivedAtMs + deadlineMs);
    });
  }

  test('reports refused requests with the X-Request-ID of the response, and does not pass them to the pipeline', async () => {
    const { app, received, refused } = startApp(async () => bankResponse());
    const responses = await Promise.all([
      supertest(app).get('/berlingroup/v1/accounts').set('X-Request-ID', requestId).expect(404),
      supertest(app).put(transfersPath).set('X-Request-ID', requestId).expect(405),
      supertest(app).get(`${transfersPath}/1`).expect(400),
      supertest(app).post(transfersPath).set('X-Request-ID', requestId).send('x'.repeat(1_001)).expect(413),
    ]);
    assert.deepEqual(received, []);
    const expected = responses.map(({ headers }) => ({
      code: headers['penstock-error'],
      requestId: headers['x-request-id'],
    }));
    const sorted = (list: readonly object[]) => list.map((one) => JSON.stringify(one)).toSorted();
    assert.deepEqual(sorted(refused), sorted(expected));
  });

  test('ends the body of a request together with its response, also if the TPP has disconnected', async (t) => {
    const contexts: PisRequest[] = [];
    const responses = [Promise.withResolvers<PisResponse>(), Promise.withResolvers<PisResponse>()];
    const { app } = startApp((request) => {
      contexts.push(request);
      return responses[contexts.length - 1]?.promise ?? assert.fail();
    });
    const server = createServer(app).listen(0, '127.0.0.1');
    t.after(() => server.close());
    await once(server, 'listening');
    const connect = async () => {
      const socket = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
      const count = contexts.length;
      socket.write(
        `POST ${transfersPath} HTTP/1.1\r\nHost: a\r\nX-Request-ID: ${requestId}\r\nContent-Length: 4\r\n\r\nbody`,
      );
      await until(5_000, 'the request is in the pipeline', () => contexts.length > count);
      assert.equal(contexts[count]?.body.toString(), 'body');
      return socket;
    };

    (await connect()).destroy();
    const failed = await connect();
    responses[0]?.resolve(bankResponse());
    responses[1]?.reject(new GatewayError('CIRCUIT_OPEN', 'Why.'));
    assert.match(String(await once(failed, 'data')), /^HTTP\/1.1 503/);
    failed.destroy();
    const bodies = contexts.map(({ body }) => body.length);
    assert.deepEqual(bodies, [0, 0]);
  });

  test('names a new X-Request-ID in each refusal of a request without a valid one', async () => {
    const { app } = startApp(async () => bankResponse());
    const ids = ['', 'no uuid', `${requestId},${requestId}`];
    const refusals = await Promise.all(
      ids.map((id) => supertest(app).get(`${transfersPath}/1`).set('X-Request-ID', id).expect(400)),
    );
    const answered = refusals.map(({ headers }) => headers['x-request-id']);
    for (const id of answered) assert.match(id ?? '', /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.equal(new Set(answered).size, ids.length);
  });
});

describe('a response of the public API', () => {
  test("has the pipeline's status, fields and bytes, the client's X-Request-ID and the environment", async () => {
    const body = Buffer.from([0, 1, 2, 255]);
    const headers = [
      ['Content-Type', 'application/octet-stream'],
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['X-Request-ID', 'somebody-elses'],
    ] as const;
    const { app } = startApp(async () => bankResponse({ status: 418, headers, body }));

    const response = await supertest(app)
      .get(`${transfersPath}/1`)
      .set('X-Request-ID', requestId)
      .expect(418);

    assert.deepEqual(response.body, body);
    assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(response.headers['x-request-id'], requestId);
    assert.equal(response.headers['penstock-environment'], 'sandbox');
    assert.equal(response.headers['cache-control'], 'no-store');
    assert.equal(response.headers['content-length'], '4');
  });

  test('with status 204 has neither a body nor a Content-Length', async () => {
    const { app } = startApp(async () => bankResponse({ status: 204, headers: [], body: Buffer.alloc(0) }));
    const response = await supertest(app)
      .delete(`${transfersPath}/1`)
      .set('X-Request-ID', requestId)
      .expect(204);
    assert.equal(response.headers['content-length'], undefined);
    assert.equal(response.text, '');
  });

  test('to a request that failed because of a bug contains no details of the bug', async () => {
    const { app } = startApp(async () => {
      throw new TypeError('secret of 192.0.2.1');
    });
    const response = await supertest(app)
      .get(`${transfersPath}/1`)
      .set('X-Request-ID', requestId)
      .expect(500);
    assert.equal(response.headers['penstock-error'], 'INTERNAL');
    assert.equal(response.headers['x-request-id'], requestId);
    assert.doesNotMatch(`${response.text}${JSON.stringify(response.headers)}`, /secret|192|TypeError/);
  });

  test('contains no fields of the framework', async () => {
    const { app } = startApp(async () => bankResponse());
    const { headers } = await supertest(app).get(`${transfersPath}/1`).set('X-Request-ID', requestId);
    for (const name of ['x-powered-by', 'etag', 'server', 'vary'])
      assert.equal(headers[name], undefined, name);
  });
});

describe('a response that cannot be written', () => {
  test('is replaced by INTERNAL, and the request does not enter the pipeline again', async () => {
    const { app, received } = startApp(async () => bankResponse({ headers: [['X-Odd', 'line\r\nbreak']] }));
    const { status } = await supertest(app).post(transfersPath).set('X-Request-ID', requestId).send('{}');
    assert.equal(status, 500);
    assert.equal(received.length, 1);
  });

  test('does not result from an error text with characters beyond ASCII', async () => {
    const { app, received } = startApp(async () => {
      throw new GatewayError('INTERNAL', 'Ein Fehler für 5 €.');
    });
    const { body } = await supertest(app)
      .post(transfersPath)
      .set('X-Request-ID', requestId)
      .send('{}')
      .expect(500);
    assert.match(body.tppMessages[0].text, /^INTERNAL: Ein Fehler für 5 €\./);
    assert.equal(received.length, 1);
  });
});

describe('a request whose quota is being checked', () => {
  function startWithQuota(handler: Handler<PisRequest>) {
    const quota = Promise.withResolvers<void>();
    quota.promise.catch(() => {}); // it may be refused before the request arrives
    const checkQuota: CheckQuota = (_client, addField) => ({
      isLikely: true,
      result: quota.promise.finally(() => addField(['RateLimit', '"default";r=0;t=1'])),
    });
    const refuse = () => quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
    return { ...startApp(handler, checkQuota), admit: quota.resolve, refuse };
  }

  for (const [decision, status, code] of [
    ['refuse', 429, 'QUOTA_EXCEEDED'],
    ['admit', 503, 'STATE_UNAVAILABLE'],
  ] as const)
    test(`gets no error of the pipeline before the result of the check: ${code}`, async () => {
      const reached = Promise.withResolvers<void>();
      const started = startWithQuota(() => {
        reached.resolve();
        return Promise.reject(new GatewayError('STATE_UNAVAILABLE', 'no state'));
      });
      const response = supertest(started.app)
        .post(transfersPath)
        .set('X-Request-ID', requestId)
        .send('{}')
        .then((reply) => reply);
      await within(5_000, 'the pipeline gets the request', reached.promise);
      started[decision]();
      const { status: received, headers } = await response;
      assert.deepEqual([received, headers['penstock-error']], [status, code]);
      assert.equal(headers.ratelimit, '"default";r=0;t=1');
      assert.equal(started.received[0]?.body.toString(), '{}');
    });

  for (const [decision, status] of [
    ['refuse', 429],
    ['admit', 413],
  ] as const)
    test(`gets an error about its body only if the quota admits it: ${status}`, async (t) => {
      for (const isChunked of [false, true]) {
        const started = startWithQuota(() => assert.fail('it reached the pipeline'));
        const server = createServer(started.app).listen(0, '127.0.0.1');
        t.after(() => server.close());
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo; // of a server that listens on TCP
        const headers = { 'X-Request-ID': requestId };
        const sent = sendRequest({ port, method: 'POST', path: transfersPath, headers, agent: false });
        if (isChunked) sent.write('x');
        sent.end('x'.repeat(1_001));
        const answered = once(sent, 'response');
        started[decision]();
        const [response] = await within(5_000, 'a response', answered);
        response.resume();
        assert.equal(response.statusCode, status, isChunked ? 'chunked' : 'Content-Length');
      }
    });

  test('releases its permit when it ends', async () => {
    const released: string[] = [];
    const permit = { environment: 'sandbox', take: () => true, release: () => void released.push('permit') };
    for (const answer of [async () => bankResponse(), () => Promise.reject(new Error('a bug'))]) {
      const { app } = startApp((request) => {
        request.permit = permit;
        return answer();
      });
      await supertest(app).get(`${transfersPath}/1`).set('X-Request-ID', requestId);
    }
    assert.equal(released.length, 2);
  });
});
