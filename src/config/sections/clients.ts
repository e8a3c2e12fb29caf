/** clients: the TPP systems that may call the gateway, and their quotas. */

import { z } from 'zod';
import { rate } from '../units.ts';
import {
  count,
  environmentName,
  file,
  fingerprint,
  isLoopback,
  plainName,
  secretHash,
  webAddress,
} from '../values.ts';

const quota = z.strictObject({
  rate: rate('20/s').describe('The maximum request rate, including requests answered from the cache.'),
  burst: count(40).describe('The maximum number of requests at once.'),
});

const webhooks = z.strictObject({
  urls: z
    .array(
      webAddress().refine(
        (url) => url.startsWith('https:') || isLoopback(new URL(url).hostname),
        'expected a URL that begins with https://; http:// is possible on loopback only',
      ),
    )
    .min(1, 'expected at least one URL; remove the setting to allow no webhooks')
    .describe(
      'The URLs that the client may name in TPP-Notification-URI: those with the same scheme, host and port, whose path begins with all segments of this one.',
    ),
  secretFile: file().describe(
    'The secrets that sign the webhooks: whsec_ and 24 to 64 random bytes in base64. With two lines, both sign: the current secret, and the previous one during a rotation.',
  ),
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
  notifications: webhooks
    .optional()
    .describe(
      'The webhooks of the client: the gateway sends the status of its payments. Without it, the gateway passes TPP-Notification-URI on.',
    ),
});

export const clients = z
  .array(client)
  .prefault([])
  .describe(
    'The TPP systems that may call the gateway. If the list is empty, every caller is accepted as one client named "anonymous".',
  );
