/** state: where the gateway stores data that outlives a request. */

import { z } from 'zod';
import { duration } from '../units.ts';
import { file } from '../values.ts';

const redisAddress = () =>
  z
    .string()
    .refine((text) => redisUrl(text) !== undefined, 'expected redis://host:6379/0 or rediss://host:6379/0');

const redis = z.union(
  [
    redisAddress().transform((url) => ({ kind: 'single' as const, url })),
    z
      .strictObject({ cluster: z.array(redisAddress()).min(1).describe('Some nodes of the cluster.') })
      .transform(({ cluster }) => ({ kind: 'cluster' as const, urls: cluster })),
    z
      .strictObject({
        sentinels: z.array(redisAddress()).min(1).describe('The sentinels.'),
        name: z.string().min(1).describe('The name of the master that they monitor.'),
      })
      .transform(({ sentinels, name }) => ({ kind: 'sentinels' as const, urls: sentinels, name })),
  ],
  {
    error:
      'expected redis://host:6379/0 or rediss://host:6379/0, ' +
      'or such addresses as { cluster: [..] } or { sentinels: [..], name: .. }',
  },
);

export const state = z
  .strictObject({
    redis: redis
      .nullable()
      .prefault(null)
      .describe(
        'The Redis that all instances share: an address, { cluster: [..] } or { sentinels: [..], name }. ' +
          'Set an address with a password by the environment variable.',
      ),
    file: file()
      .nullable()
      .default(null)
      .describe(
        'A database file for one instance on one machine. Without a file and without Redis, a restart loses the state.',
      ),
    confirm: z
      .strictObject({
        replicas: z
          .union([z.literal('all'), z.int().min(0).max(100)], {
            error: 'expected all, or a number from 0 to 100',
          })
          .default('all')
          .describe(
            'How many replicas of Redis must have the record of a payment before it is sent: a number, or "all", the largest ' +
              'number that was connected to the current master at one time. 0 does not wait for replicas.',
          ),
        timeout: duration('500ms', { min: '10ms', max: '800ms' }).describe(
          'How long replicas may take to confirm. After that, the payment is refused with STATE_UNAVAILABLE; nothing is sent.',
        ),
      })
      .prefault({})
      .describe(
        'The replicas of Redis that must have the record of a payment, so that a failover does not lose it.',
      ),
    prefix: z
      .string()
      .regex(/^[\w.:-]{0,64}$/, 'expected at most 64 letters, digits, "_", ".", ":" and "-"')
      .default('penstock:')
      .describe('The prefix of every key in Redis.'),
    timeout: duration('250ms', { min: '10ms', max: '2s' }).describe(
      'How long the gateway waits for the answer to a command of Redis; a slower Redis counts as unavailable.',
    ),
    durability: z
      .enum(['report', 'required'])
      .default('report')
      .describe(
        'Whether a Redis that may lose data (nothing on its disk, no replica, too old) is reported, or is refused: the ' +
          'gateway then does not start on it, and accepts no new payments if it becomes so later.',
      ),
    afterLoss: z
      .enum(['refuse', 'resume'])
      .default('refuse')
      .describe(
        'After the state has lost data that no running instance remembers: whether new payments are refused until an ' +
          'operator accepts the loss, or resume after 6 s. In both cases repeats of the lost payments are then paid again.',
      ),
    encryptionKeyFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the keys that encrypt stored responses: 32 bytes a line, in base64 or hex, ' +
          'the current one first.',
      ),
  })
  .prefault({})
  .describe('Where the gateway stores data that outlives a request: in Redis, in a file, or only in memory.');

/** The parsed address of a Redis, or `undefined` if the text is not one. */
export function redisUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const fits =
    url && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d{0,4})?$/.test(url.pathname);
  return fits && !url.search && !url.hash ? url : undefined;
}
