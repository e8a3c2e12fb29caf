/** Queries: real banks put parameters into their links. They go to the bank byte for byte, and identify a request. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call, type Reply } from '../kit/call.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { initiation, newCall, transfersPath } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import type { TestScope } from '../kit/test-scope.ts';

const statusPath = `${transfersPath}/1/status`;

async function start(t: TestScope, sandbox: object = {}, sections: Sections = {}) {
  const bank = await startStubBank(t, ({ method }) =>
    method === 'POST'
      ? { status: 201, headers: [['Content-Type', 'application/json']], body: '{"paymentId":"1"}' }
      : statusResponse('ACSC'),
  );
  const environments = { sandbox: { baseUrl: bank.baseUrl, ...sandbox } };
  const gateway = await startGateway(t, { environments, ...sections });
  const read = (query: string) => call(gateway.url, newCall('GET', statusPath + query));
  return { bank, gateway, read };
}

const cacheOf = (reply: Reply) => /hit|miss/.exec(reply.header('Cache-Status') ?? '')?.[0];

describe('a query', () => {
  test('goes to the bank byte for byte, for reads and writes', async (t) => {
    const { bank, gateway, read } = await start(t);
    const queries = [
      '?',
      '?a=b&c=%2F&&',
      "?x='(!)*;,:@/?$",
      '?lfdNumber=493&correlationId=%c3%9c',
      '?../..',
      `?${'a'.repeat(1_024)}`,
    ];
    for (const query of queries) await read(query);
    for (const query of queries) await call(gateway.url, { ...initiation, path: transfersPath + query });
    const sent = bank.requests.map(({ path }) => path);
    assert.deepEqual(sent, [
      ...queries.map((query) => statusPath + query),
      ...queries.map((query) => transfersPath + query),
    ]);
  });

  test('is refused if it is malformed or too long', async (t) => {
    const { bank, read } = await start(t);
    const tooLong = `?${'a'.repeat(1_025)}`;
    for (const query of ['?a=|', '?%', '?%0', '?"', tooLong, '?{}']) {
      const reply = await read(query);
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], [400, 'PATH_MALFORMED'], query);
      assert.match(reply.text, query === tooLong ? /is longer than 1,024 bytes/ : /must be percent-encoded/);
    }
    assert.equal(bank.requests.length, 0);
  });

  test('is refused where the environment does not accept its parameters, also if a status is cached', async (t) => {
    for (const [queryParameters, accepted, refused] of [
      [
        ['correlationId'],
        ['', '?', '?correlationId=1', '?%63orrelationId=2', '?correlationId'],
        ['?a=b', '?correlationId=1&a', '?correlationId=1;bic=X', '?CorrelationId=1'],
      ],
      ['none', ['', '?', '?&'], ['?a', '?correlationId=1']],
    ] as const) {
      const { bank, read } = await start(t, { queryParameters });
      for (const query of accepted) assert.equal((await read(query)).status, 200, query);
      const before = bank.requests.length;
      for (const query of refused) {
        const reply = await read(query);
        assert.equal(reply.header('Penstock-Error'), 'PATH_MALFORMED', query);
        assert.match(reply.text, /; remove all (of them|others)\./);
      }
      assert.equal(bank.requests.length, before);
    }
  });

  test('is part of what a repeat must not change', async (t) => {
    const { bank, gateway } = await start(t);
    const payment = { ...newCall('POST', `${transfersPath}?account=1`) };
    assert.equal((await call(gateway.url, payment)).status, 201);
    assert.equal((await call(gateway.url, payment)).header('Idempotent-Replayed'), 'true');
    for (const query of ['?account=2', '?', '']) {
      const reply = await call(gateway.url, { ...payment, path: transfersPath + query });
      assert.equal(reply.header('Penstock-Error'), 'DUPLICATE_MISMATCH', query);
    }
    assert.equal(bank.requests.length, 1);
  });

  test('has a cached status of its own, at most eight for each caller: the oldest goes', async (t) => {
    const { bank, read } = await start(t);
    for (let at = 0; at < 9; at++) await read(`?n=${at}`);
    assert.equal(bank.requests.length, 9);
    for (let at = 1; at < 9; at++) assert.equal(cacheOf(await read(`?n=${at}`)), 'hit', `?n=${at}`);
    assert.equal(cacheOf(await read('?n=0')), 'miss');
    assert.equal(bank.requests.length, 10);
  });

  test('of one caller displaces no cached status of another caller', async (t) => {
    const { bank, gateway } = await start(t);
    const read = (token: string, query: string) =>
      call(gateway.url, { method: 'GET', path: statusPath + query, headers: [['Authorization', token]] });
    await read('Bearer one', '');
    for (let at = 0; at < 100; at++) await read('Bearer other', `?n=${at}`);
    assert.equal(bank.requests.length, 101);
    assert.equal(cacheOf(await read('Bearer one', '')), 'hit');
    assert.equal(bank.requests.length, 101);
  });

  test('appears in no log line and no record of the request', async (t) => {
    const { gateway, read } = await start(t, {}, { log: { level: 'debug' } });
    const secret = 'value-of-a-query';
    const { fields } = await read(`?token=${secret}`);
    await read(`?token=${secret}|`);
    const { requestId } = newCall('GET', statusPath);
    await call(gateway.url, { method: 'GET', path: `${statusPath}?token=${secret}`, requestId });
    const response = await fetch(`${gateway.adminUrl}/api/decisions/${requestId}`, {
      headers: { Authorization: 'Bearer token-of-the-tests' },
    });
    assert.equal(response.status, 200);
    for (const text of [...gateway.logLines, await response.text(), JSON.stringify(fields)])
      assert.ok(!text.includes(secret), text);
  });
});
