/** idempotency, payments and statusCache: what the gateway stores, and for how long. */

import { z } from 'zod';
import { duration, size } from '../units.ts';
import { flag } from '../values.ts';

export const idempotency = z
  .strictObject({
    window: duration('24h', { min: '2ms' }).describe(
      'How long a response is stored for repeats with the same X-Request-ID.',
    ),
    wait: duration('2s', { min: '0ms', max: '5min' }).describe(
      'How long a repeat waits for the response to the first request; then DUPLICATE_IN_FLIGHT.',
    ),
    lateAnswer: duration('2min', { min: '0ms', max: '1h' }).describe(
      'How long the gateway waits for a response that missed its deadline, to learn the outcome of a payment.',
    ),
    maxStoredAnswer: size('64KiB', { min: '8KiB', max: '4MiB' }).describe(
      'How much of an answer of the bank is stored for repeats, headers included; of a longer one, only what a repeat needs.',
    ),
    maxStoredPerTenant: size('1GiB', { min: '1MiB' }).describe(
      'How much is stored for the repeats of one tenant at most: half of it at once, the other half in the course of a window. Beyond that, new writes of this tenant are refused with QUOTA_EXCEEDED.',
    ),
    memory: size('64MiB', { min: '1MiB' }).describe(
      'How much memory an instance uses to remember its own writes of the window. It stores them again if the state loses data.',
    ),
    ifStateFails: z
      .enum(['refuse', 'allow'])
      .default('refuse')
      .describe(
        'Whether payments are refused while the state cannot be reached, or sent without protection from duplicates.',
      ),
  })
  .prefault({})
  .describe('Protection from duplicates: one X-Request-ID leads to at most one payment.');

export const payments = z
  .strictObject({
    rememberFor: duration('400d', { min: '1h' }).describe(
      'How long the gateway remembers which environment a payment belongs to, counted from its last use.',
    ),
  })
  .prefault({})
  .describe('How long payments are remembered.');

export const statusCache = z
  .strictObject({
    enabled: flag(true).describe('Whether status reads are answered from the cache.'),
    finalTtl: duration('1h').describe(
      'How long a final status (RJCT, CANC, ACCC) is fresh; it never changes again.',
    ),
    settledTtl: duration('1min').describe(
      'How long a settled status (ACSC) is fresh; it may still become ACCC.',
    ),
    pendingTtl: duration('1s').describe(
      'How long any other status is fresh right after a change; grows up to pendingTtlMax while it does not change.',
    ),
    pendingTtlMax: duration('15s').describe('The longest time that such a status is fresh.'),
    staleTtl: duration('1h', { min: '0ms' }).describe(
      'The maximum age of a status that is served stale while the bank fails; 0s never serves one.',
    ),
  })
  .prefault({})
  .describe('How long the gateway may answer a status read without asking the bank.');
