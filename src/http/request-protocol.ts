/**
 * Recognizes request lines of RTSP. Node's parser reads `GET` and `POST` in RTSP/1.x like HTTP/1.x, and does not report the
 * protocol.
 */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * To be called while Node emits the request: only then the parser has its bytes. A request line in an earlier packet than the
 * end of its head is not seen.
 *
 * If the packet has the same request line in HTTP as well, the answer is true all the same: it may belong to a body.
 */
export function isRtsp({ socket, method, url }: IncomingMessage): boolean {
  const packet = parserOf(socket)?.getCurrentBuffer?.();
  if (!packet?.includes('RTSP/')) return false;
  return packet
    .toString('latin1')
    .split('\n')
    .some((line) => {
      const [first, target, protocol] = line.split(' ').filter((part) => part !== '');
      // The body of the request before may end on the same line.
      return first?.endsWith(method ?? '') && target === url && protocol?.startsWith('RTSP/') === true;
    });
}

interface Parser {
  /** A copy of the bytes that are being parsed. */
  readonly getCurrentBuffer?: () => Buffer | undefined;
}

/** Node's types do not know the parser of a socket. */
const parserOf = (socket: Socket) => (socket as Socket & { readonly parser?: Parser | null }).parser;
