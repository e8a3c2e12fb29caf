/** Knocks at the operators' door with exactly what it is given, for what no client of ours would send. */

import type { GatewayUnderTest } from './gateway.ts';
import { type RawAnswer, sendRaw } from './raw.ts';

/** A request line and fields as they stand, with a body that would switch. */
export async function sendRawAdminRequest(
  { adminUrl }: GatewayUnderTest,
  line: string,
  fields: readonly string[] = [],
): Promise<RawAnswer> {
  const { host, port } = new URL(adminUrl);
  const body = '{"environment":"sandbox","reason":"an attack"}';
  const own = [
    `Host: ${host}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  const kept = own.filter((field) => !fields.some((other) => other.startsWith(field.split(':')[0] ?? '')));
  return sendRaw(Number(port), `${line} HTTP/1.1\r\n${[...kept, ...fields].join('\r\n')}\r\n\r\n${body}`);
}
