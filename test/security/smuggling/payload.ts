/** What a payload of the corpus is made of. */

import { initiation, paymentsPath, requestText } from '../../kit/attack.ts';

/** Bytes for one connection, and how many requests in them the bank may see: none, or one and never the hidden one. */
export interface Payload {
  readonly name: string;
  readonly bytes: string;
  readonly mayReach: 0 | 1;
}

/** Stands in the path of every request that must never come out of another. */
export const mark = 'smuggled';

/** The request that the attacker hides; whole and well-formed, if anybody ever takes it for one. */
export const hidden = requestText(`GET /berlingroup/v1/payments/${mark}/1 HTTP/1.1`);

/** The same as a single chunk, and the end of a chunked body behind it. */
export const hiddenChunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;

export const post = (fields: readonly string[], body: string) => initiation(body, ...fields);
export const get = (fields: readonly string[], body = '') =>
  requestText(`GET ${paymentsPath}/1 HTTP/1.1`, fields, body);

/** A family of payloads of which the bank may see nothing. */
export const refused = (family: string, table: Readonly<Record<string, string>>): readonly Payload[] =>
  payloads(family, table, 0);

/** A family in which one request is well-formed, and all else must stay what it is: bytes, or unread. */
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
