/** idempotency, payments and statusCache: what the gateway remembers, and for how long. */

import { z } from 'zod';
import { duration } from '../units.ts';
import { flag } from '../values.ts';

export const idempotency = z
  .strictObject({
    window: duration('24h').describe('How long an answer is kept for a repeat with the same X-Request-ID.'),
    wait: duration('2s', { min: '0ms', max: '5min' }).describe(
      'How long a repeat waits for the first one to be answered; then DUPLICATE_IN_FLIGHT.',
    ),
    lateAnswer: duration('2min', { min: '0ms', max: '1h' }).describe(
      'How long the gateway listens for an answer that missed its deadline, to learn what became of a payment.',
    ),
    ifStateFails: z
      .enum(['refuse', 'allow'])
      .default('refuse')
      .describe(
        'Are payments refused while the state is out of reach, or sent without protection from duplicates?',
      ),
  })
  .prefault({})
  .describe('How one X-Request-ID leads to at most one payment.');

export const payments = z
  .strictObject({
    rememberFor: duration('400d', { min: '1h' }).describe(
      'How long the gateway remembers in which environment a payment lives, counted from its last use.',
    ),
  })
  .prefault({})
  .describe('How long payments are remembered.');

export const statusCache = z
  .strictObject({
    enabled: flag(true).describe('Are status reads answered from the cache at all?'),
    finalTtl: duration('1h').describe(
      'How long a final status (RJCT, CANC, ACCC) is kept; it never changes again.',
    ),
    settledTtl: duration('1min').describe(
      'How long a settled status (ACSC) is kept; it may still become ACCC.',
    ),
    pendingTtl: duration('1s').describe(
      'How long any other status that has just changed is kept; grows towards pendingTtlMax while it rests.',
    ),
    pendingTtlMax: duration('15s').describe('How long such a status is kept at most.'),
    staleTtl: duration('1h', { min: '0ms' }).describe(
      'How old a status may be that is served because the bank fails; 0s never serves one.',
    ),
  })
  .prefault({})
  .describe('How long the gateway may answer a status read without asking the bank.');
