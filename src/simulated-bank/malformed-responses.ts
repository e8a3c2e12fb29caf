/** Responses that are incomplete, slow, oversized or not valid HTTP. */

import { pipeline } from 'node:stream/promises';
import type { FaultContext } from './fault-context.ts';
import { type SimulatedResponse, sendResponse, serializeHead } from './simulated-response.ts';

/** Half of the bytes that Content-Length announces, then FIN; half of the head if there is no body. */
export function closeMidResponse({ socket, bankResponse }: FaultContext): void {
  socket.end(firstHalf(bankResponse));
}

/** The same, then RST after `afterMs`, so that the client can read the first half before the reset. */
export async function resetMidResponse(
  { socket, bankResponse, wait, reset }: FaultContext,
  afterMs: number,
): Promise<void> {
  socket.write(firstHalf(bankResponse));
  if (await wait(afterMs)) reset();
}

/** One chunk with half of the body, then FIN in place of the next chunk. */
export function closeMidChunk({ socket, bankResponse }: FaultContext): void {
  if (bankResponse.body.length === 0) {
    socket.end(firstHalf(bankResponse));
    return;
  }
  const half = bankResponse.body.subarray(0, Math.ceil(bankResponse.body.length / 2));
  const head = serializeHead(bankResponse, [['Transfer-Encoding', 'chunked']]);
  socket.end(
    Buffer.concat([head, Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n')]),
  );
}

/** One byte every `everyMs`, starting with the first byte of the head or of the body. */
export async function drip(
  { socket, bankResponse, wait }: FaultContext,
  everyMs: number,
  from: 'head' | 'body',
) {
  const head = serializeHead(bankResponse, lengthOf(bankResponse));
  if (from === 'body') socket.write(head);
  const slow = from === 'body' ? bankResponse.body : Buffer.concat([head, bankResponse.body]);
  for (const byte of slow) {
    if (socket.destroyed) return;
    socket.write(Buffer.of(byte));
    if (!(await wait(everyMs))) return;
  }
  socket.end();
}

/** A 200 whose JSON body has exactly that many bytes; they are never in memory at once. */
export async function sendHuge(
  { response, bankResponse }: FaultContext,
  bytes: number,
  framing: 'content-length' | 'chunked',
): Promise<void> {
  const headers = bankResponse.headers.filter(([name]) => name !== 'Content-Type').flat();
  const length = framing === 'content-length' ? ['Content-Length', `${bytes}`] : [];
  response.writeHead(200, [...headers, 'Content-Type', 'application/json', ...length]);
  // The fault exists to make clients disconnect, so an error here is expected.
  await pipeline(paddedTo(bytes, bankResponse.body), response).catch(() => {});
}

/** The object as JSON, with an additional member that fills it up. */
function* paddedTo(bytes: number, json: Buffer): Generator<string> {
  const object = json[0] === '{'.charCodeAt(0) ? json.toString('utf8') : '{"transactionStatus":"RCVD"}';
  const start = `${object.slice(0, -1)},"padding":"`;
  const end = '"}';
  yield start;
  for (let left = bytes - Buffer.byteLength(start + end); left > 0; left -= 65_536) {
    yield 'x'.repeat(Math.min(left, 65_536));
  }
  yield end;
}

function firstHalf(bankResponse: SimulatedResponse): Buffer {
  const head = serializeHead(bankResponse, lengthOf(bankResponse));
  if (bankResponse.body.length === 0) return head.subarray(0, head.length / 2);
  return Buffer.concat([head, bankResponse.body.subarray(0, bankResponse.body.length / 2)]);
}

function lengthOf(bankResponse: SimulatedResponse) {
  return bankResponse.status === 204 ? [] : [['Content-Length', `${bankResponse.body.length}`] as const];
}

/** Two contradicting lengths: a client that picks one takes the rest for the next response. */
export function twoLengths({ socket, bankResponse }: FaultContext): void {
  const lengths = [
    ['Content-Length', `${bankResponse.body.length}`],
    ['Content-Length', `${bankResponse.body.length + 7}`],
  ] as const;
  socket.end(Buffer.concat([serializeHead(bankResponse, lengths), bankResponse.body]));
}

/** A lone CR inside a field value: a client that treats it as a line end sees an additional field. */
export function carriageReturnInHeader({ socket, bankResponse }: FaultContext): void {
  const fields = [
    ['X-Note', 'one\rX-Smuggled: two'],
    ['Content-Length', `${bankResponse.body.length}`],
  ] as const;
  socket.end(Buffer.concat([serializeHead(bankResponse, fields), bankResponse.body]));
}

/** A header block of at least that many bytes, in fields of one kibibyte. */
export function hugeHeaders({ socket, bankResponse }: FaultContext, bytes: number): void {
  const padding = Array.from({ length: Math.ceil(bytes / 1024) }, (_, index) => {
    return [`X-Padding-${index}`, 'x'.repeat(1024)] as const;
  });
  const fields = [...padding, ['Content-Length', `${bankResponse.body.length}`] as const];
  socket.end(Buffer.concat([serializeHead(bankResponse, fields), bankResponse.body]));
}

/** A 101 response without an upgrade request. The connection stays open and silent. */
export function switchProtocols({ socket }: FaultContext): void {
  const fields = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ] as const;
  socket.write(serializeHead({ status: 101, headers: fields, body: Buffer.alloc(0) }, []));
}

/** Interim responses (RFC 9110 section 15.2, RFC 8297), then the final one. */
export function sendInterim(
  { socket, response, bankResponse }: FaultContext,
  statuses: readonly number[],
): void {
  for (const status of statuses) {
    const headers = status === 103 ? [['Link', '</style.css>; rel=preload'] as const] : [];
    socket.write(serializeHead({ status, headers, body: Buffer.alloc(0) }, []));
  }
  sendResponse(response, bankResponse);
}
