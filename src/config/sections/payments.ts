/** idempotency, payments and statusCache: the data that the gateway stores, and its retention. */

import { z } from 'zod';
import { duration, size } from '../units.ts';
import { flag } from '../values.ts';

export const idempotency = z
  .strictObject({
    window: duration('24h', { min: '2ms' }).describe(
      'The retention of responses for repeats with the same X-Request-ID.',
    ),
    wait: duration('2s', { min: '0ms', max: '5min' }).describe(
      'The maximum time that a repeat waits for the response to the first request; after that it is refused with DUPLICATE_IN_FLIGHT.',
    ),
    lateAnswer: duration('2min', { min: '0ms', max: '1h' }).describe(
      'The time after its deadline that the gateway continues to wait for a response, to learn the outcome of a payment.',
    ),
    maxStoredAnswer: size('64KiB', { min: '8KiB', max: '4MiB' }).describe(
      'The maximum size of a stored response, including headers. Of a larger response, only the part that a repeat needs is stored.',
    ),
    maxStoredPerTenant: size('1GiB', { min: '1MiB' }).describe(
      'The maximum amount of data stored for the repeats of one tenant: half of it at once, the other half over one window. Above it, new writes of the tenant are refused with QUOTA_EXCEEDED.',
    ),
  })
  .prefault({})
  .describe('Duplicate protection: one X-Request-ID leads to at most one payment.');

export const payments = z
  .strictObject({
    rememberFor: duration('400d', { min: '1h' }).describe(
      'The retention of the environment of each payment, counted from its last use.',
    ),
  })
  .prefault({})
  .describe('The payments that the gateway knows.');

export const statusCache = z
  .strictObject({
    enabled: flag(true).describe('Enables the cache for status reads.'),
    finalTtl: duration('1h').describe(
      'The freshness lifetime of a final status (RJCT, CANC, ACCC), which does not change any more.',
    ),
    settledTtl: duration('1min').describe(
      'The freshness lifetime of a settled status (ACSC), which can still become ACCC.',
    ),
    pendingTtl: duration('1s').describe(
      'The freshness lifetime of any other status immediately after a change. It grows up to pendingTtlMax while the status does not change.',
    ),
    pendingTtlMax: duration('15s').describe('The maximum freshness lifetime of such a status.'),
    staleTtl: duration('1h', { min: '0ms' }).describe(
      'The maximum age of a stale status that is served while the bank fails; 0s serves none.',
    ),
  })
  .prefault({})
  .describe('The cache for status reads.');
