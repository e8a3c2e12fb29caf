/** If an instance crashes while it holds the lease of a single flight, another instance fetches after the lease has expired. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until, within } from '../kit/within.ts';

test('answers identical status reads on another instance with one bank call after the fetching instance crashed', {
  skip: skipWithoutRedis,
}, async (t) => {
  let received = 0;
  const bank = await startStubBank(t, () =>
    received++ === 0 ? new Promise(() => {}) : statusResponse('ACTC'),
  );
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } },
    statusCache: { pendingTtl: '1min', pendingTtlMax: '1min' }, // the reads that wait must find the status, also on a slow machine
    state: { redis: await sharedRedisUrl(t), prefix: `test-${randomUUID()}:` },
  };
  const crashing = await startGatewayProcess(t, sections);
  const other = await startGateway(t, sections);
  let lost: string | undefined;
  void call(crashing.url, statusRead).then(
    ({ status, text }) => {
      lost = `${status} ${text}`;
    },
    () => {
      lost = 'lost';
    },
  );
  await until(20_000, 'the bank receives the first read', () => {
    assert.equal(lost, undefined, 'it is not answered');
    return bank.requests.length === 1;
  });

  const waiting = Array.from({ length: 50 }, () => call(other.url, statusRead));
  crashing.command.kill('SIGKILL');
  const replies = await within(20_000, 'the responses of the other instance', Promise.all(waiting));

  await until(20_000, 'the connection of the first read is lost', () => lost === 'lost');
  assert.ok(replies.every(({ status }) => status === 200));
  assert.equal(bank.requests.length, 2);
});
