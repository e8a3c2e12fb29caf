/** Signatures of webhooks as Standard Webhooks defines them (standardwebhooks.com), with HMAC-SHA256. */

import { createHmac } from 'node:crypto';
import type { WebhookSecrets } from '../config/webhook-secrets.ts';

/**
 * The value of `webhook-signature`: one signature for each secret.
 *
 * @param id               `webhook-id`, without a dot
 * @param timestampSeconds `webhook-timestamp`: seconds since 1970
 */
export const signWebhook = (
  secrets: WebhookSecrets,
  id: string,
  timestampSeconds: number,
  body: Buffer,
): string =>
  secrets
    .flatMap((secret) => secret ?? [])
    .map((secret) => {
      const hmac = createHmac('sha256', secret).update(`${id}.${timestampSeconds}.`).update(body);
      return `v1,${hmac.digest('base64')}`;
    })
    .join(' ');
