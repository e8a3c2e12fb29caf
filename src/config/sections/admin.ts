/** admin: the admin listener, and the operators. */

import { z } from 'zod';
import { file, host, plainName, port, secretHash } from '../values.ts';

const operator = z.strictObject({
  name: plainName().describe('Who this is in the audit log.'),
  tokenSha256: secretHash().describe('SHA-256 of the bearer token, in hex.'),
  role: z
    .enum(['read', 'operate'])
    .default('read')
    .describe('Whether this operator may only read, or change things as well.'),
});

export const admin = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address of the console, the API for operators, health and metrics.',
    ),
    port: port(9090).describe(
      'Its port; 0 takes any free one. Unless set, it follows listen.port: the next port if both listeners would have the same address.',
    ),
    tokenFile: file()
      .nullable()
      .default(null)
      .describe(
        'The file with the bearer token of one operator called "admin"; PENSTOCK_ADMIN_TOKEN does the same.',
      ),
    operators: z
      .array(operator)
      .prefault([])
      .describe(
        'The operators. Without any and without a token, a token is generated and printed at startup, on loopback only.',
      ),
  })
  .prefault({})
  .describe('Where operators reach the gateway, and who they are.');
