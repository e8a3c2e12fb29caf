/** Stale responses: which statuses are served while the bank fails, to whom, and for how long. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerValue } from '../../../src/pis/headers.ts';
import { type ErrorCode, GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { Field } from '../../kit/fields.ts';
import type { Sections } from '../../kit/gateway.ts';
import {
  bankResponse,
  bankStatusResponse,
  createCacheInstance,
  statusIn,
  statusRead,
} from './cache-instance.ts';

const hour = 3_600_000;

/** A payment whose status is cached, at a bank that then fails in this way. */
async function cachedPayment(
  failure: ErrorCode | number,
  answered: readonly Field[] = [],
  sections: Sections = {},
) {
  let nowMs = Date.parse('2026-01-01T12:00:00Z');
  let fails = false;
  const bank = async () => {
    if (!fails) return bankStatusResponse('ACTC', answered);
    if (typeof failure === 'number') return bankResponse(failure, [], 'broken');
    throw new GatewayError(failure, 'the bank fails');
  };
  const { send } = createCacheInstance(createMemoryState(), bank, sections, () => nowMs);
  await send(statusRead());
  fails = true;
  return {
    ask: send,
    readAfter: (ms: number, ...headers: readonly Field[]) => {
      nowMs += ms;
      return send(statusRead({ headers }));
    },
  };
}

describe('stale responses', () => {
  for (const failure of [
    ...['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN', 'UPSTREAM_UNREACHED'],
    ...['UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN', 500, 502, 503, 504],
  ] as const) {
    test(`serves a stale status with its age if the bank fails with ${failure}`, async () => {
      const { readAfter } = await cachedPayment(failure as ErrorCode | number); // each is one or the other
      const { status, servedFrom, headers, body } = await readAfter(90_500);
      assert.deepEqual([status, servedFrom], [200, 'stale-cache']);
      assert.equal(JSON.parse(body.toString()).transactionStatus, 'ACTC');
      assert.equal(headerValue(headers, 'age'), '90');
      assert.match(headerValue(headers, 'cache-status') ?? '', /^penstock; hit; fwd=stale; ttl=-89$/);
    });
  }

  for (const failure of ['INTERNAL', 'STATE_UNAVAILABLE', 'DRAINING'] as const) {
    test(`returns the error ${failure}, which is not a failure of the bank`, async () => {
      const { readAfter } = await cachedPayment(failure);
      await assert.rejects(readAfter(90_000), { code: failure });
    });
  }

  for (const status of [400, 404, 429]) {
    test(`returns the bank's response with status ${status}`, async () => {
      const { readAfter } = await cachedPayment(status);
      assert.equal((await readAfter(90_000)).status, status);
    });
  }

  test('serves a stale status up to an age of staleTtl, and the error after that', async () => {
    const { readAfter } = await cachedPayment('CIRCUIT_OPEN');
    assert.equal(statusIn(await readAfter(hour - 1)), 'ACTC');
    await assert.rejects(readAfter(1), { code: 'CIRCUIT_OPEN' });
    assert.equal((await (await cachedPayment(503)).readAfter(hour)).status, 503);
  });

  test('never serves a stale status with staleTtl 0s', async () => {
    const { readAfter } = await cachedPayment('CIRCUIT_OPEN', [['Cache-Control', 'max-age=0']], {
      statusCache: { staleTtl: '0s' },
    });
    await assert.rejects(readAfter(0), { code: 'CIRCUIT_OPEN' });
  });

  for (const control of ['no-cache', 'max-age=0', 'no-store']) {
    test(`serves no stale status to a read with Cache-Control: ${control}`, async () => {
      const { readAfter } = await cachedPayment('CIRCUIT_OPEN');
      await assert.rejects(readAfter(0, ['Cache-Control', control]), { code: 'CIRCUIT_OPEN' });
    });
  }

  for (const control of ['max-age=3600', 'min-fresh=1']) {
    test(`serves no stale status to a read with Cache-Control: ${control} (RFC 9111 section 5.2.1)`, async () => {
      const { readAfter } = await cachedPayment('CIRCUIT_OPEN');
      await assert.rejects(readAfter(90_000, ['Cache-Control', control]), { code: 'CIRCUIT_OPEN' });
    });
  }

  for (const control of ['must-revalidate', 'proxy-revalidate', 's-maxage=1']) {
    test(`serves no stale status if the bank sent ${control} (RFC 9111 section 4.2.4)`, async () => {
      const { readAfter } = await cachedPayment('CIRCUIT_OPEN', [['Cache-Control', control]]);
      await assert.rejects(readAfter(90_000), { code: 'CIRCUIT_OPEN' });
    });
  }

  for (const other of [
    { headers: [['Authorization', 'Bearer another']] },
    { tenant: 'rival' },
    { payment: 'another' },
    { headers: [['PSU-ID', 'another']] },
  ] as const) {
    test(`serves no stale status to another caller: ${JSON.stringify(other)}`, async () => {
      const { ask } = await cachedPayment('CIRCUIT_OPEN');
      await assert.rejects(ask(statusRead(other)), { code: 'CIRCUIT_OPEN' });
    });
  }
});
