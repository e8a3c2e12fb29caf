/** Answers that are right as far as they go: cut off, dripping, or without an end. */

import { pipeline } from 'node:stream/promises';
import { type BankResponse, send, serializeHead } from './bank-response.ts';
import type { FaultContext } from './fault-context.ts';

/** Half of what Content-Length promises, then FIN; half of the head if there is no body to halve. */
export function closeInTheMiddle({ socket, answer }: FaultContext): void {
  socket.end(firstHalf(answer));
}

/** The same, then RST: the client has `afterMs` to see the first half, which a reset may otherwise overtake. */
export async function resetInTheMiddle(
  { socket, answer, wait, reset }: FaultContext,
  afterMs: number,
): Promise<void> {
  socket.write(firstHalf(answer));
  if (await wait(afterMs)) reset();
}

/** One chunk with half of the body, then FIN where the next chunk should begin. */
export function closeInTheMiddleOfAChunk({ socket, answer }: FaultContext): void {
  if (answer.body.length === 0) {
    socket.end(firstHalf(answer));
    return;
  }
  const half = answer.body.subarray(0, Math.ceil(answer.body.length / 2));
  const head = serializeHead(answer, [['Transfer-Encoding', 'chunked']]);
  socket.end(
    Buffer.concat([head, Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n')]),
  );
}

/** One byte every `everyMs`, from the first byte of the head or of the body on. */
export async function dribble(
  { socket, answer, wait }: FaultContext,
  everyMs: number,
  from: 'head' | 'body',
) {
  const head = serializeHead(answer, lengthOf(answer));
  if (from === 'body') socket.write(head);
  const slow = from === 'body' ? answer.body : Buffer.concat([head, answer.body]);
  for (const byte of slow) {
    if (socket.destroyed) return;
    socket.write(Buffer.of(byte));
    if (!(await wait(everyMs))) return;
  }
  socket.end();
}

/** A 200 whose JSON body has exactly that many bytes, which are never in memory at once. */
export async function sendHuge(
  { response, answer }: FaultContext,
  bytes: number,
  framing: 'content-length' | 'chunked',
): Promise<void> {
  const headers = answer.headers.filter(([name]) => name !== 'Content-Type').flat();
  const length = framing === 'content-length' ? ['Content-Length', `${bytes}`] : [];
  response.writeHead(200, [...headers, 'Content-Type', 'application/json', ...length]);
  // A client that leaves because this is too much is what the fault is for.
  await pipeline(paddedTo(bytes, answer.body), response).catch(() => {});
}

/** The object as JSON, with a member more that fills it up. */
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

function firstHalf(answer: BankResponse): Buffer {
  const head = serializeHead(answer, lengthOf(answer));
  if (answer.body.length === 0) return head.subarray(0, head.length / 2);
  return Buffer.concat([head, answer.body.subarray(0, answer.body.length / 2)]);
}

function lengthOf(answer: BankResponse) {
  return answer.status === 204 ? [] : [['Content-Length', `${answer.body.length}`] as const];
}

// MERGED HEADER (rewrite or remove):
/* Answers that no HTTP library would send: written to the connection as bytes. */

/** Two lengths that contradict each other: a reader that picks one takes the rest for the next answer. */
export function twoLengths({ socket, answer }: FaultContext): void {
  const lengths = [
    ['Content-Length', `${answer.body.length}`],
    ['Content-Length', `${answer.body.length + 7}`],
  ] as const;
  socket.end(Buffer.concat([serializeHead(answer, lengths), answer.body]));
}

/** A lone CR inside a field value: a reader that takes it for a line end sees a field more. */
export function carriageReturnInHeader({ socket, answer }: FaultContext): void {
  const fields = [
    ['X-Note', 'one\rX-Smuggled: two'],
    ['Content-Length', `${answer.body.length}`],
  ] as const;
  socket.end(Buffer.concat([serializeHead(answer, fields), answer.body]));
}

/** A header block of at least that many bytes, in fields of one kibibyte. */
export function hugeHeaders({ socket, answer }: FaultContext, bytes: number): void {
  const padding = Array.from({ length: Math.ceil(bytes / 1024) }, (_, index) => {
    return [`X-Padding-${index}`, 'x'.repeat(1024)] as const;
  });
  const fields = [...padding, ['Content-Length', `${answer.body.length}`] as const];
  socket.end(Buffer.concat([serializeHead(answer, fields), answer.body]));
}

/** 101 as if the client had asked for another protocol. The connection stays open and silent. */
export function switchProtocols({ socket }: FaultContext): void {
  const fields = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ] as const;
  socket.write(serializeHead({ status: 101, headers: fields, body: Buffer.alloc(0) }, []));
}

/** Interim answers (RFC 9110 section 15.2, RFC 8297), then the proper one. */
export function sendInterim({ socket, response, answer }: FaultContext, statuses: readonly number[]): void {
  for (const status of statuses) {
    const headers = status === 103 ? [['Link', '</style.css>; rel=preload'] as const] : [];
    socket.write(serializeHead({ status, headers, body: Buffer.alloc(0) }, []));
  }
  send(response, answer);
}
