import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import {
  cacheStatus,
  createStatusCache,
  createStatusCacheServices,
} from '../../../src/status-cache/cache-status.ts';
import { configOf } from '../../kit/gateway.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { authorisationRead, bankResponse, paymentRead, statusRead } from './cache-instance.ts';

function createStage() {
  const { log, lines } = captureLog();
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl: 'https://bank.example', standardVersion: '1.3.11' },
  };
  const services = createStatusCacheServices(createMemoryState(), undefined, log);
  const stage = cacheStatus(createStatusCache(configOf({ environments }), services));
  return {
    lines,
    /** The reasons recorded for the request. */
    async read(request: ReturnType<typeof statusRead>, body: string, headers: HeaderFields = []) {
      const reasons: string[] = [];
      const recordEvent = (event: RequestEvent) => {
        if (event.what === 'unreadable') reasons.push(event.why);
      };
      await stage({ ...request, recordEvent }, async () => bankResponse(200, headers, body));
      return reasons;
    },
  };
}

const noCache: HeaderFields = [['Cache-Control', 'no-cache']];
const unknownCharset: HeaderFields = [['Content-Type', 'application/json; charset=x-foo']];

test('a status that cannot be read is logged once for each payment, and recorded for each request', async () => {
  const { read, lines } = createStage();
  const body = '{"transactionStatus":"ACTC"}';
  for (const payment of ['one', 'one', 'two'])
    assert.deepEqual(await read(statusRead({ payment, headers: noCache }), body, unknownCharset), [
      'charset x-foo',
    ]);
  assert.deepEqual(
    lines.map(({ level, message, fields }) => [level, message, fields?.why]),
    Array.from({ length: 2 }, () => [
      'warn',
      'the status in a response of the bank cannot be read',
      'charset x-foo',
    ]),
  );
});

test('a response to a status read must show one status, and other responses need none', async () => {
  const { read } = createStage();
  const several = '<a><TxSts>ACSP</TxSts><TxSts>RJCT</TxSts></a>';
  assert.deepEqual(await read(statusRead({ payment: 'a' }), ''), ['an empty body']);
  assert.deepEqual(await read(statusRead({ payment: 'b' }), '{}'), ['no status, or several different ones']);
  assert.deepEqual(await read(statusRead({ payment: 'c' }), several), [
    'no status, or several different ones',
  ]);
  assert.deepEqual(await read(statusRead({ payment: 'd' }), '{"transactionStatus":"ACTC"}'), []);
  assert.deepEqual(await read(paymentRead(), '{}'), []);
  assert.deepEqual(await read(authorisationRead(), '{}'), []);
  assert.deepEqual(await read(paymentRead(), '<html>'), ['a web page']);
});
