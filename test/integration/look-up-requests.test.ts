/** TPPs look up their own requests with `GET /requests/{X-Request-ID}`, if the operators allow it. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { shortDeadlines, startGatewayWithBank } from '../kit/gateway.ts';
import { lookUp, lookUpPatiently, reportOf, selfService } from '../kit/look-up.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { assertRefused } from '../kit/refusal.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { clientSettings, startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** Without what differs between any two responses. */
const comparable = ({ status, fields, text }: Reply) => ({
  status,
  fields: fields.filter(([name]) => name !== 'Date'),
  text,
});

describe('the path of look-ups', () => {
  test('is answered like any unknown path by default, whatever the method and the client', async (t) => {
    const { gateway } = await startGatewayWithBank(t, { clients: clientSettings() });
    const id = randomUUID();
    await lookUp(gateway, 'shop', id);
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'])
      for (const [client, lookedUp] of [['shop', id] as const, [undefined, 'no-uuid'] as const]) {
        const one = { method, requestId: id };
        const asked = await lookUp(gateway, client, lookedUp, one);
        const unknown = await lookUp(gateway, client, '', { ...one, path: `/nothing/${lookedUp}` });
        assert.deepEqual(comparable(asked), comparable(unknown), `${method} ${lookedUp}`);
        assert.equal(asked.header('Penstock-Error'), 'PATH_UNKNOWN');
      }
  });

  test('exists from the reload on that sets requests.selfService, and until the one that removes it', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
    const id = randomUUID();
    assert.equal((await lookUp(gateway, undefined, id)).header('Penstock-Error'), 'PATH_UNKNOWN');
    await gateway.reload({ environments, ...selfService });
    assert.equal((await lookUp(gateway, undefined, id)).header('Penstock-Error'), 'REQUEST_UNKNOWN');
    await gateway.reload({ environments });
    assert.equal((await lookUp(gateway, undefined, id)).header('Penstock-Error'), 'PATH_UNKNOWN');
  });

  test('refuses malformed ids, other methods, unknown clients and bodies, in this order', async (t) => {
    const { gateway } = await startGatewayWithBank(t, { clients: clientSettings(), ...selfService });
    const id = randomUUID();
    for (const malformed of ['no-uuid', `${id}0`, id.slice(1), id.replaceAll('-', ''), '*', '$'])
      assertRefused(
        await lookUp(gateway, undefined, malformed, { method: 'PUT' }),
        400,
        'REQUEST_ID_INVALID',
        'FORMAT_ERROR',
      );
    for (const malformed of [`${id}?x`, `%2a`, `${id}%00`, `${id}/`, ''])
      assertRefused(await lookUp(gateway, 'shop', malformed), 400, 'PATH_MALFORMED', 'FORMAT_ERROR');
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const reply = await lookUp(gateway, undefined, id, { method });
      assertRefused(reply, 405, 'METHOD_NOT_ALLOWED', 'SERVICE_INVALID');
      assert.equal(reply.header('Allow'), 'GET, HEAD');
    }
    const unknownKey = await lookUp(gateway, undefined, id, { headers: [['X-API-Key', 'key of nobody']] });
    for (const reply of [unknownKey, await lookUp(gateway, undefined, id)])
      assertRefused(reply, 401, 'CLIENT_UNKNOWN', 'TOKEN_UNKNOWN');
    const withBody = await lookUp(gateway, 'shop', id, { body: '{}' });
    assertRefused(withBody, 400, 'BODY_UNEXPECTED', 'FORMAT_ERROR');
    assertRefused(await lookUp(gateway, 'shop', id), 404, 'REQUEST_UNKNOWN', 'RESOURCE_UNKNOWN');
    for (const path of ['/requests', `/requests/${id}/${id}`, `/Requests/${id}`]) {
      const reply = await lookUp(gateway, 'shop', id, { path });
      assertRefused(reply, 404, 'PATH_UNKNOWN', 'RESOURCE_UNKNOWN');
    }
  });

  test('accepts an empty chunked body at once and in parts, and refuses its first byte', async (t) => {
    const { gateway } = await startGatewayWithBank(t, selfService);
    const head = `GET /requests/${randomUUID()} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n`;
    await onConnection(gateway.port, async (connection) => {
      connection.send(`${head}\r\n0\r\n\r\n`);
      assert.equal((await connection.answer()).headers.get('penstock-error'), 'REQUEST_UNKNOWN');
      for (const [bytes, code] of [
        ['0\r\n\r\n', 'REQUEST_UNKNOWN'],
        ['1\r\n \r\n0\r\n\r\n', 'BODY_UNEXPECTED'],
      ] as const) {
        connection.send(`${head}Expect: 100-continue\r\n\r\n`);
        await until(5_000, 'the gateway asks for the body', () => connection.unread().includes(' 100 '));
        connection.send(bytes);
        assert.equal((await connection.answer()).headers.get('penstock-error'), code);
      }
      await connection.closed();
    });
  });

  test('needs no X-Request-ID of its own, and answers HEAD with the head of GET', async (t) => {
    const { gateway } = await startGatewayWithBank(t, selfService);
    const requestId = randomUUID();
    await call(gateway.url, { ...initiation, requestId });
    const get = await lookUpPatiently(gateway, undefined, requestId, { requestId: 'as given' });
    assert.equal(get.status, 200, get.text);
    assert.match(get.header('X-Request-ID') ?? '', /^[0-9a-f-]{36}$/);
    assert.equal(get.header('Cache-Control'), 'no-store');
    assert.equal(get.header('Content-Type'), 'application/json');
    const head = await lookUpPatiently(gateway, undefined, requestId, { method: 'HEAD' });
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.header('Content-Length'), get.header('Content-Length'));
    const unknown = await lookUpPatiently(gateway, undefined, randomUUID(), { method: 'HEAD' });
    assert.deepEqual([unknown.status, unknown.text], [404, '']);
  });
});

describe('a look-up', () => {
  test('lists each attempt with its result, newest first, and the payment', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, selfService);
    const requestId = randomUUID();
    bank.injectFault({ name: 'status', status: 401 }, { times: 1 });
    const send = () => call(gateway.url, { ...initiation, requestId });
    assert.equal((await send()).status, 401);
    const paymentId = String(jsonOf(await send()).paymentId);
    await send();
    const changed = await call(gateway.url, { ...initiation, requestId, body: '{"another":"payment"}' });
    assert.equal(changed.header('Penstock-Error'), 'DUPLICATE_MISMATCH');

    const report = await reportOf(gateway, undefined, requestId.toUpperCase());
    assert.equal(report.xRequestId, requestId.toUpperCase());
    assert.deepEqual([report.complete, report.missing], [true, []]);
    const { advice, rules, ...outcome } = report.initiation ?? assert.fail();
    assert.deepEqual(outcome, { state: 'answered', environment: 'sandbox', status: 201, paymentId });
    assert.match(advice, /read its status/);
    assert.match(rules, /docs\/callers\/submit-payments\.md$/);
    assert.deepEqual(
      report.requests.map((one) => [one.status, one.servedFrom, one.seenByBank, one.error]),
      [
        [409, 'gateway', 'no', 'DUPLICATE_MISMATCH'],
        [201, 'ledger', 'no', null],
        [201, 'bank', 'yes', null],
        [401, 'bank', 'yes', null],
      ],
    );
    for (const one of report.requests) {
      const { operation, environment, paymentId: named, durationMs, at } = one;
      assert.deepEqual([operation, named], ['initiatePayment', paymentId]);
      assert.ok(environment === 'sandbox' || one.error === 'DUPLICATE_MISMATCH');
      assert.ok((durationMs ?? -1) >= 0 && Math.abs(Date.parse(at) - Date.now()) < 60_000);
    }
    assert.match(
      report.requests[0]?.explanation ?? '',
      /already used for a request with another path or body/,
    );
    assert.equal(bank.payments.length, 1);
  });

  test('shows that a status came from the cache, and an error with its explanation and its link', async (t) => {
    const listen = { errorPageUrl: 'https://tpp.example/errors' };
    const { gateway } = await startGatewayWithBank(t, { ...selfService, listen });
    const paymentId = jsonOf(await call(gateway.url, initiation)).paymentId;
    const path = `${transfersPath}/${paymentId}/status`;
    const requestId = randomUUID();
    for (const _ of [1, 2]) await call(gateway.url, { method: 'GET', path, requestId });
    const { initiation: none, requests } = await reportOf(gateway, undefined, requestId);
    assert.equal(none, null);
    assert.deepEqual(
      requests.map(({ operation, servedFrom, seenByBank }) => [operation, servedFrom, seenByBank]),
      [
        ['getPaymentStatus', 'cache', 'no'],
        ['getPaymentStatus', 'bank', 'yes'],
      ],
    );

    const refused = randomUUID();
    const headers = [['Penstock-Environment', 'elsewhere']] as const;
    await call(gateway.url, { method: 'GET', path, requestId: refused, headers });
    const [one = assert.fail()] = (await reportOf(gateway, undefined, refused)).requests;
    assert.deepEqual(
      [one.operation, one.environment, one.error, one.seenByBank],
      [null, null, 'ENVIRONMENT_UNKNOWN', 'no'],
    );
    assert.match(one.explanation ?? '', /Penstock-Environment must be one of: sandbox/);
    assert.equal(one.help, 'https://tpp.example/errors#environment_unknown');
  });

  test('of a payment in doubt says what to do and what not, until the outcome is known', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { ...shortDeadlines, ...selfService });
    bank.injectFault({ name: 'latency', ms: 600_000 }, { times: 1 });
    const requestId = randomUUID();
    const failed = await call(gateway.url, { ...initiation, requestId });
    assert.equal(failed.header('Penstock-Error'), 'OUTCOME_UNKNOWN');

    const inDoubt = await reportOf(gateway, undefined, requestId);
    assert.equal(inDoubt.initiation?.state, 'in-doubt');
    assert.equal(inDoubt.initiation.paymentId, null);
    assert.match(inDoubt.initiation.advice, /Do not initiate it again with another X-Request-ID/);
    const [one = assert.fail()] = inDoubt.requests;
    assert.deepEqual([one.status, one.error, one.seenByBank], [504, 'OUTCOME_UNKNOWN', 'maybe']);
    assert.match(one.explanation ?? '', /do not initiate again/);

    bank.endDelays();
    const isAnswered = async () =>
      (await reportOf(gateway, undefined, requestId)).initiation?.state === 'answered';
    await until(10_000, 'the late response', isAnswered);
    const { initiation: known, requests } = await reportOf(gateway, undefined, requestId);
    assert.equal(known?.paymentId, bank.payments[0]?.paymentId);
    assert.deepEqual([requests[0]?.seenByBank, requests[0]?.paymentId], ['yes', known?.paymentId]);
    assert.match(requests[0]?.explanation ?? '', /answered later, with 201/);
  });

  test('is refused when a tenant has made ten in a moment; other tenants and payments are not affected', async (t) => {
    const { gateway, pay } = await startTwoEnvironments(t, selfService);
    let count = 0;
    let reply = await lookUp(gateway, 'shop', randomUUID());
    for (; reply.status === 404 && count < 10_000; count++)
      reply = await lookUp(gateway, 'shop', randomUUID());
    assert.ok(count >= 10, `${count} look-ups`);
    assertRefused(reply, 429, 'QUOTA_EXCEEDED', 'ACCESS_EXCEEDED');
    assert.equal(reply.header('Retry-After'), '1');
    assert.equal((await lookUp(gateway, 'rival', randomUUID())).status, 404);
    await pay('shop');
  });

  test('is logged and counted, but not recorded, and the bank receives nothing', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients: clientSettings(), ...selfService });
    const requestId = randomUUID();
    const own = { requestId }; // a developer may send the same id
    assert.equal((await lookUp(gateway, 'shop', requestId, own)).status, 404);
    assert.equal((await lookUp(gateway, undefined, requestId, own)).status, 401);
    assert.equal((await lookUpPatiently(gateway, 'shop', requestId, own)).status, 404);
    const { text } = await callAdminApi(gateway, 'GET', `/api/search?requestId=${requestId}`);
    assert.deepEqual(JSON.parse(text).requests, []);
    assert.equal(bank.requests.length, 0);

    const key = [['X-API-Key', 'key of shop']] as const;
    await call(gateway.url, { ...initiation, requestId, headers: [...initiation.headers, ...key] });
    assert.equal((await reportOf(gateway, 'shop', requestId, own)).requests.length, 1);
    const lines = gateway.logLines.map((line) => JSON.parse(line));
    const lookUps = lines.filter(({ operation }) => operation === 'lookUpRequest');
    assert.deepEqual(
      lookUps.map(({ message, client, tenant, status, error }) => [message, client, tenant, status, error]),
      [
        ['request refused', 'shop', 'shop', 404, 'REQUEST_UNKNOWN'],
        ['request refused', undefined, undefined, 401, 'CLIENT_UNKNOWN'],
        ['request refused', 'shop', 'shop', 404, 'REQUEST_UNKNOWN'],
        ['request', 'shop', 'shop', 200, undefined],
      ],
    );
    const metrics = parsePrometheus((await callAdminApi(gateway, 'GET', '/metrics')).text);
    const counted = metrics
      .get('penstock_requests_total')
      ?.samples.filter(({ labels }) => labels.operation === 'lookUpRequest')
      .map(({ labels, value }) => [labels.error, labels.status, labels.served_from, value]);
    assert.deepEqual(counted?.toSorted(), [
      ['CLIENT_UNKNOWN', '4xx', 'gateway', 1],
      ['REQUEST_UNKNOWN', '4xx', 'gateway', 2],
      ['none', '2xx', 'gateway', 1],
    ]);
  });

  test('shows a client only requests in environments that it may use', async (t) => {
    const { gateway, send } = await startTwoEnvironments(t, selfService);
    const requestId = randomUUID();
    await send('shop', withEnvironmentHeader('production', { ...initiation, requestId }));
    assert.equal((await reportOf(gateway, 'shop', requestId)).initiation?.environment, 'production');
    const other = await lookUpPatiently(gateway, 'till', requestId);
    assertRefused(other, 404, 'REQUEST_UNKNOWN', 'RESOURCE_UNKNOWN');
    const inSandbox = randomUUID();
    await send('shop', { ...initiation, requestId: inSandbox });
    assert.equal((await reportOf(gateway, 'till', inSandbox)).requests.length, 1);
  });
});
