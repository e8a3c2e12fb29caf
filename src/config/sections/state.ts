/** state: where the gateway stores data that outlives a request. */

import { z } from 'zod';
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
    prefix: z
      .string()
      .regex(/^[\w.:-]{0,64}$/, 'expected at most 64 letters, digits, "_", ".", ":" and "-"')
      .default('penstock:')
      .describe('The prefix of every key in Redis.'),
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
