/** shaping: the rate and concurrency of calls to the bank, and the queue. */

import { z } from 'zod';
import { duration, percent, rate } from '../units.ts';
import { count, overriding } from '../values.ts';

const wait = (fallback: string) => duration(fallback, { min: '0ms', max: '5min' });

const maxWait = {
  write: wait('10s').describe(
    'The maximum wait of a payment initiation, a cancellation or the start of an authorisation.',
  ),
  read: wait('3s').describe('The maximum wait of a read.'),
  status: wait('1s').describe('The maximum wait of a status read.'),
};

const limits = {
  rate: rate('50/s').describe('The maximum rate of calls to the bank, of all instances together.'),
  burst: count(50).describe(
    'The maximum number of calls at once after a pause; half of it is reserved for payments.',
  ),
  maxConcurrent: count(100).describe('The maximum number of concurrent calls of one instance.'),
  reserve: percent('10%', { min: '1%', max: '40%' }).describe(
    'The part of maxConcurrent that reads leave free for payments. Status reads leave 1.5 times as much free, and one tenant leaves twice as much free if several are configured.',
  ),
  queue: count(1000).describe(
    'The maximum length of the queue of one instance; further calls are refused with QUEUE_FULL.',
  ),
};

export const shaping = z
  .strictObject({
    ...limits,
    maxWait: z
      .strictObject(maxWait)
      .prefault({})
      .describe('The maximum time in the queue, by lane; after that the call is refused with QUEUE_TIMEOUT.'),
    expectedInstances: count(1).describe(
      'The number of instances that share the rate. While Redis is unavailable, each instance uses its share of the rate.',
    ),
  })
  .prefault({})
  .describe('The rate and concurrency of calls to each environment, and the queue.');

/** The same settings in an environment; those that are left out are as in the global section. */
export const shapingOverrides = z.strictObject({
  rate: overriding(limits.rate, 'shaping'),
  burst: overriding(limits.burst, 'shaping'),
  maxConcurrent: overriding(limits.maxConcurrent, 'shaping'),
  reserve: overriding(limits.reserve, 'shaping'),
  queue: overriding(limits.queue, 'shaping'),
  maxWait: z
    .strictObject({
      write: overriding(maxWait.write, 'shaping'),
      read: overriding(maxWait.read, 'shaping'),
      status: overriding(maxWait.status, 'shaping'),
    })
    .optional()
    .describe('The maximum time in the queue, by lane.'),
});
