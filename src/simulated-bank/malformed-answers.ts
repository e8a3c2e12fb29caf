/** Answers that no HTTP library would send: written to the connection as bytes. */
import { headOf, send } from './answers.ts';
import type { Exchange } from './exchange.ts';

/** Two lengths that contradict each other: a reader that picks one takes the rest for the next answer. */
export function twoLengths({ socket, answer }: Exchange): void {
  const lengths = [
    ['Content-Length', `${answer.body.length}`],
    ['Content-Length', `${answer.body.length + 7}`],
  ] as const;
  socket.end(Buffer.concat([headOf(answer, lengths), answer.body]));
}

/** A lone CR inside a field value: a reader that takes it for a line end sees a field more. */
export function carriageReturnInHeader({ socket, answer }: Exchange): void {
  const fields = [
    ['X-Note', 'one\rX-Smuggled: two'],
    ['Content-Length', `${answer.body.length}`],
  ] as const;
  socket.end(Buffer.concat([headOf(answer, fields), answer.body]));
}

/** A header block of at least that many bytes, in fields of one kibibyte. */
export function hugeHeaders({ socket, answer }: Exchange, bytes: number): void {
  const padding = Array.from({ length: Math.ceil(bytes / 1024) }, (_, index) => {
    return [`X-Padding-${index}`, 'x'.repeat(1024)] as const;
  });
  const fields = [...padding, ['Content-Length', `${answer.body.length}`] as const];
  socket.end(Buffer.concat([headOf(answer, fields), answer.body]));
}

/** 101 as if the client had asked for another protocol. The connection stays open and silent. */
export function switchProtocols({ socket }: Exchange): void {
  const fields = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ] as const;
  socket.write(headOf({ status: 101, headers: fields, body: Buffer.alloc(0) }, []));
}

/** Interim answers (RFC 9110 section 15.2, RFC 8297), then the proper one. */
export function sendInterim({ socket, response, answer }: Exchange, statuses: readonly number[]): void {
  for (const status of statuses) {
    const headers = status === 103 ? [['Link', '</style.css>; rel=preload'] as const] : [];
    socket.write(headOf({ status, headers, body: Buffer.alloc(0) }, []));
  }
  send(response, answer);
}
