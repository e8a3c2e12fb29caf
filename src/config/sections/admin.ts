/** admin: where operators reach the gateway, and who they are. */

import { z } from 'zod';
import { file, host, plainName, port, secretHash } from '../values.ts';

const operator = z.strictObject({
  name: plainName().describe('Who this is in the audit log.'),
  tokenSha256: secretHash().describe('SHA-256 of the bearer token, in hex.'),
  role: z
    .enum(['read', 'operate'])
    .default('read')
    .describe('May this operator only look, or change things too?'),
});

export const admin = z
  .strictObject({
    host: host('127.0.0.1').describe(
      'The address of the console, the API for operators, health and metrics.',
    ),
    port: port(9090).describe('Its port; 0 takes any free one.'),
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
        'The operators. With none and without a token, one token is made and printed at start, on loopback only.',
      ),
  })
  .prefault({})
  .describe('Where operators reach the gateway, and who they are.');
