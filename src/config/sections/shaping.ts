/** shaping: how fast the gateway calls the bank, and how long a call may wait in the queue. */

import { z } from 'zod';
import { duration, percent, rate } from '../units.ts';
import { count } from '../values.ts';

const wait = (fallback: string) => duration(fallback, { min: '0ms', max: '5min' });

const maxWait = {
  write: wait('10s').describe('The longest that a payment, cancellation or authorisation waits.'),
  read: wait('3s').describe('The longest that a read waits.'),
  status: wait('1s').describe('The longest that a status read waits.'),
};

const limits = {
  rate: rate('50/s').describe('How many calls all instances together send to the bank.'),
  burst: count(50).describe(
    'How many of them may be sent at once after a pause; half of it is reserved for payments.',
  ),
  maxConcurrent: count(100).describe('How many calls of one instance may be in progress at the same time.'),
  reserve: percent('10%', { min: '1%', max: '40%' }).describe(
    'The part of maxConcurrent that reads leave free for payments; status reads leave one and a half times as much free, and one tenant twice as much if several are configured.',
  ),
  queue: count(1000).describe(
    'How many calls may wait in one instance; one more is refused with QUEUE_FULL.',
  ),
};

export const shaping = z
  .strictObject({
    ...limits,
    maxWait: z
      .strictObject(maxWait)
      .prefault({})
      .describe('How long a call may wait in the queue, by lane; then it is refused with QUEUE_TIMEOUT.'),
    expectedInstances: count(1).describe(
      'How many instances share the rate; each uses its share of it while Redis cannot be reached.',
    ),
  })
  .prefault({})
  .describe('How fast each environment is called, and how long a call may wait in the queue.');

/** The same settings in an environment; those that are left out are as in the global section. */
export const shapingOverrides = z.strictObject({
  rate: overriding(limits.rate),
  burst: overriding(limits.burst),
  maxConcurrent: overriding(limits.maxConcurrent),
  reserve: overriding(limits.reserve),
  queue: overriding(limits.queue),
  maxWait: z
    .strictObject({
      write: overriding(maxWait.write),
      read: overriding(maxWait.read),
      status: overriding(maxWait.status),
    })
    .optional()
    .describe('How long a call may wait in the queue, by lane.'),
});

/** The setting without its default: otherwise every environment would override the global value with the default. */
function overriding<Inner extends z.ZodType>(field: z.ZodDefault<Inner> | z.ZodPrefault<Inner>) {
  return field
    .unwrap()
    .optional()
    .meta({ defaultText: 'as in shaping' })
    .describe(field.description ?? '');
}
