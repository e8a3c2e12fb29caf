/** state: where the gateway keeps what must outlive a request. */

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
        name: z.string().min(1).describe('The name under which they watch the master.'),
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
          'A password belongs into the environment variable.',
      ),
    file: file()
      .nullable()
      .default(null)
      .describe(
        'A database file for one instance on one machine. Without this and Redis, a restart forgets everything.',
      ),
    prefix: z
      .string()
      .regex(/^[\w.:-]{0,64}$/, 'expected at most 64 letters, digits, "_", ".", ":" and "-"')
      .default('penstock:')
      .describe('What every key in Redis begins with.'),
    encryptionKeyFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the keys that stored answers are encrypted with: 32 bytes a line, in base64 or hex, ' +
          'the current one first.',
      ),
  })
  .prefault({})
  .describe('Where the gateway keeps what must outlive a request: in Redis, in a file, or in memory only.');

/** The address of a Redis, parsed, or `undefined` if it is none. */
export function redisUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const fits =
    url && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d{0,4})?$/.test(url.pathname);
  return fits && !url.search && !url.hash ? url : undefined;
}
