/** Answers that are right as far as they go: cut off, dripping, or without an end. */
import { pipeline } from 'node:stream/promises';
import { type Answer, headOf } from './answers.ts';
import type { Exchange } from './exchange.ts';

/** Half of what Content-Length promises, then FIN; half of the head if there is no body to halve. */
export function closeInTheMiddle({ socket, answer }: Exchange): void {
  socket.end(firstHalf(answer));
}

/** The same, then RST: the client has `afterMs` to see the first half, which a reset may otherwise overtake. */
export async function resetInTheMiddle(
  { socket, answer, wait, reset }: Exchange,
  afterMs: number,
): Promise<void> {
  socket.write(firstHalf(answer));
  if (await wait(afterMs)) reset();
}

/** One chunk with half of the body, then FIN where the next chunk should begin. */
export function closeInTheMiddleOfAChunk({ socket, answer }: Exchange): void {
  if (answer.body.length === 0) {
    socket.end(firstHalf(answer));
    return;
  }
  const half = answer.body.subarray(0, Math.ceil(answer.body.length / 2));
  const head = headOf(answer, [['Transfer-Encoding', 'chunked']]);
  socket.end(
    Buffer.concat([head, Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n')]),
  );
}

/** One byte every `everyMs`, from the first byte of the head or of the body on. */
export async function dribble({ socket, answer, wait }: Exchange, everyMs: number, from: 'head' | 'body') {
  const head = headOf(answer, lengthOf(answer));
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
  { response, answer }: Exchange,
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

function firstHalf(answer: Answer): Buffer {
  const head = headOf(answer, lengthOf(answer));
  if (answer.body.length === 0) return head.subarray(0, head.length / 2);
  return Buffer.concat([head, answer.body.subarray(0, answer.body.length / 2)]);
}

function lengthOf(answer: Answer) {
  return answer.status === 204 ? [] : [['Content-Length', `${answer.body.length}`] as const];
}
