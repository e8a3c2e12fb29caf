/** admin: the admin listener and the operators. */

import { z } from 'zod';
import { file, host, plainName, port, secretHash } from '../values.ts';
import { links } from './admin-links.ts';

const operator = z.strictObject({
  name: plainName().describe('The name of the operator in the audit log.'),
  tokenSha256: secretHash().describe(
    'SHA-256 of the bearer token: 64 hex digits (printf %s "$TOKEN" | sha256sum).',
  ),
  role: z
    .enum(['read', 'operate'])
    .default('read')
    .describe('`read` allows reading only; `operate` also allows changes.'),
});

export const admin = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address to listen on, for the console, the admin API, health checks and metrics.',
    ),
    port: port(9090).describe(
      'The port to listen on; 0 selects a free port. Unless set, it follows listen.port: the next port if both listeners would have the same address.',
    ),
    tokenFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the bearer token of one operator named "admin". The environment variable PENSTOCK_ADMIN_TOKEN contains such a token itself. Prefer admin.operators: a shared token does not identify a person.',
      ),
    operators: z
      .array(operator)
      .prefault([])
      .describe(
        'The operators. If there are none and no token is set, a token is generated and printed at each start; this is possible on loopback only.',
      ),
    links,
  })
  .prefault({})
  .describe('The admin listener and its operators.');
