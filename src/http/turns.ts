/** The requests of one connection, one at a time: the next begins when the answer to the one before is out. */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { GatewayError } from '../flow/errors.ts';
import { createInStep, type InStep } from '../flow/in-step.ts';

/** A request and the answer to it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly answer: ServerResponse;
  /** Whether somebody listens to the request already. */
  isBegun: boolean;
}

/** What is known of a connection. */
interface Line {
  /** The first one runs, the others wait. Once the last of the connection has begun to end, it stays. */
  readonly exchanges: Exchange[];
  /** `undefined` while nothing is due: what a connection that rests was used for is not kept. */
  latest: Exchange | undefined;
  /** Came behind the last one that will be served. */
  passedOver: number;
  /** What was found wrong with the latest request, while it waited. */
  wrong?: GatewayError;
}

export interface Turns {
  /** Takes the next request of a connection. */
  readonly take: RequestListener;
  /** The latest request of a connection that was or will be served; `undefined` if its answer is out. */
  latestOn(socket: Socket): Exchange | undefined;
  /** Tells a request that not all of it will come, now or when it begins. */
  spoil(socket: Socket, error: GatewayError): void;
  /** Whether an answer on this connection is still to be written, or still being sent. */
  areOn(socket: Socket): boolean;
  /** From now on every answer whose head is not written yet says `Connection: close`. */
  drain(): void;
}

/**
 * How many requests may wait on a connection. The answer to the last of them is the last of the connection; who goes on
 * sending in spite of that is hung up on when as many more have come.
 */
export const maxWaiting = 32;

/**
 * @param begin  serves a request; those that come together begin together
 * @param rested told of a connection on which nothing is due any more
 */
export function createTurns(
  begin: RequestListener,
  rested: (socket: Socket) => void,
  inStep: InStep = createInStep(),
): Turns {
  // A Map, because connections live long: exchanges would not be kept in one (flow/roll.ts).
  const lines = new Map<Socket, Line>();
  let draining = false;

  const lineOf = (socket: Socket): Line => {
    const known = lines.get(socket);
    if (known) return known;
    const line: Line = { exchanges: [], latest: undefined, passedOver: 0 };
    lines.set(socket, line);
    socket.once('close', () => lines.delete(socket));
    return line;
  };

  const beginNext = (line: Line, socket: Socket): void => {
    const [next] = line.exchanges;
    if (!next) {
      line.latest = undefined;
      rested(socket);
      return;
    }
    next.answer.once('close', () => {
      if (!next.answer.shouldKeepAlive || socket.destroyed) return; // nobody would get another answer
      line.exchanges.shift();
      beginNext(line, socket);
    });
    if (draining) next.answer.shouldKeepAlive = false;
    inStep(() => {
      if (next.answer.closed) return; // the TPP has hung up
      next.isBegun = true;
      begin(next.request, next.answer);
      if (line.wrong && next === line.latest) next.request.emit('error', line.wrong);
    });
  };

  return {
    take(request, answer) {
      const { socket } = request;
      const line = lineOf(socket);
      const { exchanges } = line;
      if (exchanges.at(-1)?.answer.shouldKeepAlive === false) {
        if (++line.passedOver > maxWaiting) socket.destroy();
        return;
      }
      line.latest = { request, answer, isBegun: false };
      exchanges.push(line.latest);
      if (exchanges.length > maxWaiting) answer.shouldKeepAlive = false;
      if (exchanges.length === 1) beginNext(line, socket);
    },
    latestOn: (socket) => lines.get(socket)?.latest,
    spoil(socket, error) {
      const line = lines.get(socket);
      if (!line?.latest) return;
      if (line.latest.isBegun) line.latest.request.emit('error', error);
      else line.wrong = error;
    },
    areOn: (socket) => lines.get(socket)?.exchanges[0]?.answer.closed === false,
    drain() {
      draining = true;
      for (const { exchanges } of lines.values()) {
        const [running] = exchanges;
        if (running && !running.answer.headersSent) running.answer.shouldKeepAlive = false;
      }
    },
  };
}
