/** The parts of a payload of the corpus. */

import { initiation, paymentsPath, requestText } from '../../kit/attack.ts';

/** The bytes of one connection, and the number of requests that may reach the bank: none, or one, but never the hidden one. */
export interface Payload {
  readonly name: string;
  readonly bytes: string;
  readonly mayReach: 0 | 1;
}

/** Part of the path of every hidden request. */
export const mark = 'smuggled';

/** The request that the attacker hides. It is complete and valid if it is parsed as a request. */
export const hidden = requestText(`GET /berlingroup/v1/payments/${mark}/1 HTTP/1.1`);

/** The hidden request as a single chunk, and the end of the chunked body. */
export const hiddenChunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;

export const post = (fields: readonly string[], body: string) => initiation(body, ...fields);
export const get = (fields: readonly string[], body = '') =>
  requestText(`GET ${paymentsPath}/1 HTTP/1.1`, fields, body);

/** A family of payloads of which nothing may reach the bank. */
export const refused = (family: string, table: Readonly<Record<string, string>>): readonly Payload[] =>
  payloads(family, table, 0);

/** A family in which one request is valid, and all other bytes must stay a body or unread. */
export const onlyTheFirst = (family: string, table: Readonly<Record<string, string>>): readonly Payload[] =>
  payloads(family, table, 1);

/** One payload for each of the values. */
export const each = (
  values: readonly string[],
  bytesOf: (value: string) => string,
): Readonly<Record<string, string>> =>
  Object.fromEntries(values.map((value) => [JSON.stringify(value), bytesOf(value)]));

function payloads(family: string, table: Readonly<Record<string, string>>, mayReach: 0 | 1): Payload[] {
  return Object.entries(table).map(([name, bytes]) => ({ name: `${family}: ${name}`, bytes, mayReach }));
}
