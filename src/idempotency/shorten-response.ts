/**
 * Shortens a response that is longer than `idempotency.maxStoredAnswer` to what a repeat needs. The result is a valid
 * response with a message that it is not complete: the ledger stores and replays it like any other.
 */

import { lowerCase } from '../pis/headers.ts';
import { isJson } from '../pis/media-type.ts';
import type { PisResponse } from '../request/messages.ts';
import { contentOfBody } from '../request/read-content.ts';

/** Bytes of the headers and of the body. */
export const storedBytesOf = ({ headers, body }: PisResponse): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length);

/** Limits of what is stored of a long response. Bytes. */
const maxMembersBytes = 4_096;
const maxMessagesBytes = 1_024;
const maxHeadersBytes = 4_096;

/**
 * Removes headers that describe the bytes of the body, such as `Digest` and `Signature`. Of a JSON object, the shortest members
 * remain, such as `paymentId`, `transactionStatus` and `_links`.
 */
export async function shortenResponse(response: PisResponse): Promise<PisResponse> {
  const { members, messages } = await readBody(response).catch(() => ({ members: {}, messages: [] }));
  const isExplainedError = response.status >= 400 && (messages.length > 0 || Object.keys(members).length > 0);
  const tppMessages = isExplainedError ? messages : [...messages, notice(response)];
  const body = Buffer.from(JSON.stringify(tppMessages.length > 0 ? { ...members, tppMessages } : members));
  return { ...response, headers: keptHeaders(response), body };
}

type Members = Readonly<Record<string, unknown>>;

/** @throws RangeError if the body is nested too deeply */
async function readBody(response: PisResponse): Promise<{ members: Members; messages: readonly unknown[] }> {
  const members = await membersOf(response);
  return { members: shortestMembers(members), messages: leadingMessages(members) };
}

/** The members of a JSON object; none of any other body. */
async function membersOf(response: PisResponse): Promise<Members> {
  const content = await contentOfBody(response);
  const parsed = content.kind === 'json' ? content.json : undefined;
  return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : {};
}

/** What a repeat needs most: kept before all other members. */
const essentialNames: ReadonlySet<string> = new Set([
  ...['paymentId', 'transactionStatus', 'authorisationId', 'scaStatus', '_links'],
]);
/** Only the first other members are considered: responses of the standard have fewer, and measuring more takes long. */
const maxMembers = 100;

/** As many as the limit allows, in their original order; without `tppMessages`. */
function shortestMembers({ tppMessages: _, ...members }: Members): Members {
  const names = Object.keys(members);
  const measure = (name: string) => ({ name, bytes: bytesOf({ [name]: members[name] }) });
  const essential = names.filter((name) => essentialNames.has(name)).map(measure);
  const others = names
    .filter((name) => !essentialNames.has(name))
    .slice(0, maxMembers)
    .map(measure);
  let left = maxMembersBytes;
  const kept = new Set<string>();
  for (const { name, bytes } of [...essential, ...others.toSorted((one, other) => one.bytes - other.bytes)]) {
    if (bytes > left) continue;
    left -= bytes;
    kept.add(name);
  }
  return Object.fromEntries(Object.entries(members).filter(([name]) => kept.has(name)));
}

function leadingMessages({ tppMessages }: Members): readonly unknown[] {
  if (!Array.isArray(tppMessages)) return [];
  const messages: readonly unknown[] = tppMessages;
  let left = maxMessagesBytes;
  const end = messages.findIndex((message) => {
    left -= bytesOf(message);
    return left < 0;
  });
  return end < 0 ? messages : messages.slice(0, end);
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

/** In the format of the standard: `tppMessages` of a successful response may contain warnings. */
function notice({ status, body }: PisResponse) {
  const text = `The gateway stored only a part of the bank's response, which had ${body.length} bytes.`;
  if (status < 400) return { category: 'WARNING', code: 'WARNING', text: `${text} Read the payment.` };
  return { category: 'ERROR', code: errorCodes.get(status) ?? 'SERVICE_INVALID', text };
}

/** The message codes of the standard that describe these statuses best. */
const errorCodes: ReadonlyMap<number, string> = new Map([
  [400, 'FORMAT_ERROR'],
  [401, 'TOKEN_INVALID'],
  [403, 'SERVICE_BLOCKED'],
  [404, 'RESOURCE_UNKNOWN'],
  [409, 'STATUS_INVALID'],
  [500, 'INTERNAL_SERVER_ERROR'],
  [503, 'SERVICE_UNAVAILABLE'],
]);

const keptNames: ReadonlySet<string> = new Set([
  ...['location', 'content-location', 'date', 'cache-control', 'retry-after'],
  ...['aspsp-sca-approach', 'aspsp-multiple-consent-support', 'aspsp-notification-support'],
]);

function keptHeaders({ headers }: PisResponse): PisResponse['headers'] {
  let left = maxHeadersBytes;
  const kept = headers.filter(([name, value]) => {
    if (!keptNames.has(lowerCase(name)) && !(lowerCase(name) === 'content-type' && isJson(value)))
      return false;
    left -= name.length + value.length;
    return left >= 0;
  });
  const hasType = kept.some(([name]) => lowerCase(name) === 'content-type');
  return hasType ? kept : [...kept, ['Content-Type', 'application/json']];
}
