/** Verifies a webhook of the gateway (docs/callers/webhooks.md). */

import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * @param headers with names in lower case, as Node has them
 * @param body    the bytes as they arrived, not parsed and serialized again
 * @param secret  of your client: `whsec_...`
 * @throws Error if the message is not from the gateway, or is older than five minutes
 */
export function verifyWebhook(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  body: Buffer,
  secret: string,
): unknown {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) < 300)) throw new Error('the webhook is too old');
  const hmac = createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'));
  const expected = Buffer.from(`v1,${hmac.update(`${id}.${timestamp}.`).update(body).digest('base64')}`);
  const isEqual = (one: Buffer) => one.length === expected.length && timingSafeEqual(one, expected);
  if (!signatures?.split(' ').some((signature) => isEqual(Buffer.from(signature))))
    throw new Error('the signature of the webhook is wrong');
  return JSON.parse(body.toString());
}
