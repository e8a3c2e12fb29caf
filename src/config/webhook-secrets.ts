/** The file with the secrets that sign the webhooks of a client (`clients[].notifications.secretFile`). */

/** Two at a time, so that a receiver can replace its secret while messages are being delivered. */
export type WebhookSecrets = readonly [current: Buffer, previous?: Buffer];

/** Bytes of a secret (Standard Webhooks, "Signing scheme"). */
const minSecretBytes = 24;
const maxSecretBytes = 64;

/**
 * Parses the file of a client's secrets: `whsec_` and base64, one per line, at most two. Blank lines and lines that start with #
 * are ignored.
 *
 * @throws Error that completes a sentence that begins with the name of the file; it quotes nothing of the content
 */
export function parseWebhookSecrets(content: string): WebhookSecrets {
  const lines = content
    .split('\n')
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  const [current, previous, ...others] = lines.map(
    ({ text, number }) => parseSecret(text) ?? fail(`line ${number} is not a secret`),
  );
  if (!current) return fail('contains no secret');
  if (others.length > 0) return fail('contains more than two secrets');
  if (previous && current.equals(previous)) return fail('contains the same secret twice');
  return previous ? [current, previous] : [current];
}

function parseSecret(text: string): Buffer | undefined {
  const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const isCanonical = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  return isCanonical && bytes.length >= minSecretBytes && bytes.length <= maxSecretBytes ? bytes : undefined;
}

function fail(problem: string): never {
  throw new Error(
    `${problem}; write one or two secrets, one per line: whsec_ and ${minSecretBytes} to ${maxSecretBytes} random bytes in base64 (echo "whsec_$(openssl rand -base64 32)")`,
  );
}
