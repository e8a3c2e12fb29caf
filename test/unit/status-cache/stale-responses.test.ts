/** While the bank fails, the last status known is served, marked as stale: to whom, for how long, and when not. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerValue } from '../../../src/pis/headers.ts';
import { type ErrorCode, GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { Field } from '../../kit/fields.ts';
import type { Sections } from '../../kit/gateway.ts';
import { bankResponse, createCacheInstance, statusIn, statusRead, statusResponse } from './cache-instance.ts';

const hour = 3_600_000;

/** A payment that was read once, before the bank began to fail like that. */
async function knownPayment(
  failure: ErrorCode | number,
  answered: readonly Field[] = [],
  sections: Sections = {},
) {
  let nowMs = Date.parse('2026-01-01T12:00:00Z');
  let fails = false;
  const bank = async () => {
    if (!fails) return statusResponse('ACTC', answered);
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

describe('the last status known', () => {
  for (const failure of [
    ...['QUEUE_FULL', 'QUEUE_TIMEOUT', 'CIRCUIT_OPEN', 'UPSTREAM_UNREACHED'],
    ...['UPSTREAM_MALFORMED', 'OUTCOME_UNKNOWN', 500, 502, 503, 504],
  ] as const) {
    test(`is served when the bank fails with ${failure}, marked as stale and with its age`, async () => {
      const { readAfter } = await knownPayment(failure as ErrorCode | number); // the list says which
      const { status, servedFrom, headers, body } = await readAfter(90_500);
      assert.deepEqual([status, servedFrom], [200, 'stale-cache']);
      assert.equal(JSON.parse(body.toString()).transactionStatus, 'ACTC');
      assert.equal(headerValue(headers, 'age'), '90');
      assert.match(headerValue(headers, 'cache-status') ?? '', /^penstock; hit; fwd=stale; ttl=-89$/);
    });
  }

  for (const failure of ['INTERNAL', 'STATE_UNAVAILABLE', 'DRAINING'] as const) {
    test(`does not cover up ${failure}, which is none of the bank's`, async () => {
      const { readAfter } = await knownPayment(failure);
      await assert.rejects(readAfter(90_000), { code: failure });
    });
  }

  for (const status of [400, 404, 429]) {
    test(`does not cover up a ${status}: the bank has answered`, async () => {
      const { readAfter } = await knownPayment(status);
      assert.equal((await readAfter(90_000)).status, status);
    });
  }

  test('is served up to an age of staleTtl, then the error is', async () => {
    const { readAfter } = await knownPayment('CIRCUIT_OPEN');
    assert.equal(statusIn(await readAfter(hour - 1)), 'ACTC');
    await assert.rejects(readAfter(1), { code: 'CIRCUIT_OPEN' });
    assert.equal((await (await knownPayment(503)).readAfter(hour)).status, 503);
  });

  test('is never served with staleTtl 0s', async () => {
    const { readAfter } = await knownPayment('CIRCUIT_OPEN', [['Cache-Control', 'max-age=0']], {
      statusCache: { staleTtl: '0s' },
    });
    await assert.rejects(readAfter(0), { code: 'CIRCUIT_OPEN' });
  });

  for (const control of ['no-cache', 'max-age=0', 'no-store']) {
    test(`is not served to a read with Cache-Control: ${control}`, async () => {
      const { readAfter } = await knownPayment('CIRCUIT_OPEN');
      await assert.rejects(readAfter(0, ['Cache-Control', control]), { code: 'CIRCUIT_OPEN' });
    });
  }

  for (const control of ['must-revalidate', 'proxy-revalidate', 's-maxage=1']) {
    test(`is not served if the bank had said ${control} (RFC 9111 section 4.2.4)`, async () => {
      const { readAfter } = await knownPayment('CIRCUIT_OPEN', [['Cache-Control', control]]);
      await assert.rejects(readAfter(90_000), { code: 'CIRCUIT_OPEN' });
    });
  }

  for (const other of [
    { headers: [['Authorization', 'Bearer another']] },
    { tenant: 'rival' },
    { payment: 'another' },
    { headers: [['PSU-ID', 'another']] },
  ] as const) {
    test(`is not served to anybody else: ${JSON.stringify(other)}`, async () => {
      const { ask } = await knownPayment('CIRCUIT_OPEN');
      await assert.rejects(ask(statusRead(other)), { code: 'CIRCUIT_OPEN' });
    });
  }
});
