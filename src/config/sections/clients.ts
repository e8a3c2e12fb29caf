/** clients: the TPP systems that may call the gateway, and their quotas. */

import { z } from 'zod';
import { rate } from '../units.ts';
import { count, environmentName, fingerprint, plainName, secretHash } from '../values.ts';

const quota = z.strictObject({
  rate: rate('20/s').describe('The maximum request rate, including requests answered from the cache.'),
  burst: count(40).describe('The maximum number of requests at once.'),
});

const client = z.strictObject({
  name: plainName().describe('The name of the client in logs and metrics.'),
  tenant: plainName()
    .optional()
    .meta({ defaultText: 'the name' })
    .describe('The owner of the payments: clients of one tenant see the same payments and cached responses.'),
  apiKeySha256: secretHash()
    .optional()
    .describe(
      'SHA-256 of the key that the client sends as X-API-Key: 64 hex digits (printf %s "$KEY" | sha256sum).',
    ),
  certificateSha256: fingerprint()
    .optional()
    .describe(
      "SHA-256 fingerprint of the client's TLS certificate: 64 hex digits, with or without colons (openssl x509 -in client.crt -noout -fingerprint -sha256).",
    ),
  environments: z
    .array(environmentName())
    .min(1, 'expected at least one environment; remove the setting to allow all of them')
    .optional()
    .meta({ defaultText: 'all' })
    .describe(
      'The environments that the client may use. If there is only one, its new payments go there, even if another environment is active.',
    ),
  quota: quota.optional().describe('The quota of the client; without it, there is no limit.'),
});

export const clients = z
  .array(client)
  .prefault([])
  .describe(
    'The TPP systems that may call the gateway. If the list is empty, every caller is accepted as one client named "anonymous".',
  );
