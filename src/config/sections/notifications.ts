/** notifications: waiting for a change of a payment's status, and the polls of the gateway for it. */

import { z } from 'zod';
import { duration, percent } from '../units.ts';
import { count } from '../values.ts';

export const notifications = z
  .strictObject({
    maxWait: duration('55s', { min: '0ms', max: '10min' }).describe(
      'The maximum time that a status read with `Prefer: wait` waits for a change; longer waits are shortened to it. Shorter than the timeout of any proxy in front. 0s: reads do not wait.',
    ),
    maxWaiting: count(1000).describe(
      'The maximum number of waiting status reads and event streams of one tenant on one instance; further ones are refused with OVERLOADED. All tenants together may use half of the connections.',
    ),
    maxInterval: duration('1h', { min: '1s', max: '1d' }).describe(
      'The maximum interval between two polls of a status that somebody waits for.',
    ),
    share: percent('20%', { min: '1%' }).describe(
      'The part of the rate of an environment that all polls together may use.',
    ),
  })
  .prefault({})
  .describe('Waiting for a change of the status of a payment, which the gateway then polls.');
