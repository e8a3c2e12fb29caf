/** An instance dies while it asks the bank for all: the others wait for it no longer than its lease lasts. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { call } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { statusRead } from '../kit/request.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

/** How long a lease lasts, and how often those who wait look; the rest is for the machine. */
const mostMs = 3_000 + 200 + 800;

test('the reads of an instance that dies delay those of others by its lease at most', {
  skip: skipWithoutRedis,
}, async (t) => {
  let asked = 0;
  const bank = await startStubBank(t, () => (asked++ === 0 ? new Promise(() => {}) : statusResponse('ACTC')));
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } },
    state: { redis: await sharedRedisUrl(t), prefix: `test-${randomUUID()}:` },
  };
  const dying = await startGatewayProcess(t, sections);
  const living = await startGateway(t, sections);
  const lost = call(dying.url, statusRead).catch(() => 'lost');
  await until(5_000, 'it asks the bank', () => bank.requests.length === 1);

  const startMs = performance.now();
  const waiting = Array.from({ length: 50 }, () => call(living.url, statusRead));
  dying.command.kill('SIGKILL');
  const replies = await Promise.all(waiting);
  const tookMs = performance.now() - startMs;

  assert.equal(await lost, 'lost');
  assert.ok(replies.every(({ status }) => status === 200));
  assert.equal(bank.requests.length, 2);
  assert.ok(tookMs < mostMs, `they waited ${tookMs} ms`);
  t.diagnostic(`waited ${Math.round(tookMs)} ms for a lease of 3,000`);
});
