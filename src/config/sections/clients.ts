/** clients: which TPP systems may call, and how often. */

import { z } from 'zod';
import { rate } from '../units.ts';
import { count, environmentName, fingerprint, plainName, secretHash } from '../values.ts';

const quota = z.strictObject({
  rate: rate('20/s').describe(
    'How many requests the client may send, including those answered from the cache.',
  ),
  burst: count(40).describe('How many of them may come at once.'),
});

const client = z.strictObject({
  name: plainName().describe('Who this is in logs and metrics.'),
  tenant: plainName()
    .optional()
    .meta({ defaultText: 'the name' })
    .describe('The owner of the payments: clients of one tenant see the same payments and cached responses.'),
  apiKeySha256: secretHash()
    .optional()
    .describe('SHA-256 of the key that the client sends as X-API-Key, in hex.'),
  certificateSha256: fingerprint()
    .optional()
    .describe("SHA-256 fingerprint of the client's TLS certificate."),
  environments: z
    .array(environmentName())
    .min(1, 'name at least one environment, or leave it out to allow them all')
    .optional()
    .meta({ defaultText: 'all' })
    .describe('The environments that the client may use.'),
  quota: quota.optional().describe('How often the client may call; without it, there is no limit.'),
});

export const clients = z
  .array(client)
  .prefault([])
  .describe(
    'The TPP systems that may call; with none in the list, everybody may, as one client called "anonymous".',
  );
