/** Sends raw requests to the admin listener, which no HTTP client would send. */

import type { GatewayUnderTest } from './gateway.ts';
import { type RawAnswer, sendRaw } from './raw-connection.ts';

/** Sends the request line and header fields unchanged, with a body that would switch the environment. */
export async function sendRawAdminRequest(
  { adminUrl }: GatewayUnderTest,
  line: string,
  fields: readonly string[] = [],
): Promise<RawAnswer> {
  const { host, port } = new URL(adminUrl);
  const body = '{"environment":"sandbox","reason":"an attack"}';
  const defaults = [
    `Host: ${host}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const remaining = defaults.filter(
    (field) => !fields.some((other) => other.startsWith(field.split(':')[0] ?? '')),
  );
  return sendRaw(
    Number(port),
    `${line} HTTP/1.1\r\n${[...remaining, ...fields].join('\r\n')}\r\n\r\n${body}`,
  );
}
