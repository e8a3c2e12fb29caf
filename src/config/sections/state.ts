/** state: the storage of data that outlives a request. */

import { z } from 'zod';
import { postgresParameterProblem, postgresUrls } from '../postgres-urls.ts';
import { duration } from '../units.ts';
import { file } from '../values.ts';
import { clientTls } from './client-tls.ts';

const redisAddress = () =>
  z
    .string()
    .refine((text) => redisUrl(text) !== undefined, 'expected redis://host:6379/0 or rediss://host:6379/0');

/** The address of a single Redis under an unknown key. */
const unknownKey = {
  error: ({ code }: z.core.$ZodRawIssue) =>
    code === 'unrecognized_keys'
      ? 'a single Redis is a URL without a mapping: redis://host:6379/0'
      : undefined,
};

const redis = z.union(
  [
    redisAddress().transform((url) => ({ kind: 'single' as const, url })),
    z
      .strictObject(
        { cluster: z.array(redisAddress()).min(1).describe('URLs of some nodes of the cluster.') },
        unknownKey,
      )
      .transform(({ cluster }) => ({ kind: 'cluster' as const, urls: cluster })),
    z
      .strictObject(
        {
          sentinels: z.array(redisAddress()).min(1).describe('URLs of the sentinels.'),
          name: z.string().min(1).describe('The name of the master that the sentinels monitor.'),
        },
        unknownKey,
      )
      .transform(({ sentinels, name }) => ({ kind: 'sentinels' as const, urls: sentinels, name })),
  ],
  {
    error:
      'expected redis://host:6379/0 or rediss://host:6379/0, ' +
      'or a mapping with such URLs: { cluster: [..] } or { sentinels: [..], name: .. }',
  },
);

const postgresAddress = z.string().superRefine((text, context) => {
  const [url] = postgresUrls(text) ?? [];
  const message = url
    ? postgresParameterProblem(url)
    : 'expected postgres://user@host:5432/database, or several hosts: postgres://user@host1,host2/database';
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

export const state = z
  .strictObject({
    postgres: postgresAddress
      .nullable()
      .default(null)
      .describe(
        'The PostgreSQL database (14 or newer) that all instances share: postgres://user@host:5432/database, with sslmode, sslrootcert, ' +
          'sslcert and sslkey as for libpq. Several hosts, separated by commas, are tried in their order: the one that accepts writes is ' +
          'used. URLs with a password are allowed in the environment variable only.',
      ),
    redis: redis
      .nullable()
      .prefault(null)
      .describe(
        'The Redis that all instances share: a URL (redis://host:6379/0, or rediss:// for TLS); ' +
          '{ cluster: [URL, ..] } with some nodes of a cluster; or { sentinels: [URL, ..], name: MASTER } with the ' +
          'sentinels (usually port 26379) and the name of the master that they monitor. ' +
          'URLs with a password are allowed in the environment variable only, a mapping as JSON.',
      ),
    redisTls: clientTls({
      certificate: 'The client certificate',
      server: 'Redis',
      defaultName: 'the host of the URL',
    })
      .nullable()
      .default(null)
      .describe(
        'The trusted CA certificates and the client certificate for Redis with TLS (rediss:); also for the nodes of a cluster and for sentinels.',
      ),
    file: file()
      .nullable()
      .default(null)
      .describe(
        'The database file of a single instance. Its folder must exist. Without a file and without PostgreSQL, the database is in memory, and ' +
          'a restart loses it.',
      ),
    prefix: z
      .string()
      .regex(/^[\w.:-]{0,64}$/, 'expected at most 64 letters, digits, "_", ".", ":" and "-"')
      .default('penstock:')
      .describe('The prefix of every key in Redis.'),
    timeout: duration('250ms', { min: '10ms', max: '2s' }).describe(
      'The timeout of Redis commands; a slower Redis counts as unavailable.',
    ),
    encryptionKeyFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the keys that encrypt stored responses, and subscriptions to webhooks: one key of 32 bytes per line, in base64 or ' +
          'hex, the current key first.',
      ),
  })
  .prefault({})
  .describe('The storage of data that outlives a request: PostgreSQL, a file, or memory; and Redis.');

/** The parsed address of a Redis, or `undefined` if the text is not one. */
export function redisUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const fits =
    url && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^(\/\d{0,4})?$/.test(url.pathname);
  return fits && !url.search && !url.hash ? url : undefined;
}
