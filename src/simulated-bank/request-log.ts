/** Everything that reached the bank, written down at the moment its header arrives: what breaks later has arrived, too. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { OperationName } from '../pis/operations.ts';
import type { FaultName } from './faults.ts';

/** One request as it came; `body` and `bodyComplete` grow until it is read. */
export interface LoggedRequest {
  /** Which TCP connection it came on; they are counted from 1. */
  readonly connection: number;
  /** The subject's name (CN) in the certificate that the client has shown, if any. */
  readonly clientCertificate: string | undefined;
  /** Milliseconds of the machine's monotonic clock (`performance.now()`). */
  readonly arrivedAtMs: number;
  readonly method: string;
  /** The request target, untouched. */
  readonly url: string;
  readonly httpVersion: string;
  /** Names and values in turn, in the case and order in which they came. */
  readonly rawHeaders: readonly string[];
  /** `undefined` if the request was none of the eight. */
  readonly operation: OperationName | undefined;
  /** The fault that struck it, if any. */
  readonly fault: FaultName | undefined;
  /** What has been read of the body so far. */
  readonly body: Buffer;
  readonly bodyComplete: boolean;
}

interface ArrivalInfo {
  readonly connection: number;
  readonly operation: OperationName | undefined;
  readonly fault: FaultName | undefined;
}

/** The log of one bank. */
export interface RequestLog {
  /** Writes a request down. @returns reads its body: `undefined` if the sender went away before its end */
  arrived(request: IncomingMessage, arrival: ArrivalInfo): () => Promise<Buffer | undefined>;
  entries(): readonly LoggedRequest[];
  clear(): void;
}

/** Beyond that the older half is forgotten, so that a bank can run for days; no test comes near. */
const maxEntries = 200_000;

/** A log with nothing in it. `tell` is called whenever something was added. */
export function createRequestLog(tell: () => void): RequestLog {
  let entries: LoggedRequest[] = [];

  return {
    arrived: (request, arrival) => {
      const chunks: Buffer[] = [];
      if (entries.length === maxEntries) entries = entries.slice(maxEntries / 2);
      entries.push(entryOf(request, arrival, chunks));
      tell();
      return () => readInto(chunks, request, tell);
    },
    entries: () => [...entries],
    clear: () => {
      entries = [];
    },
  };
}

function entryOf(request: IncomingMessage, arrival: ArrivalInfo, chunks: readonly Buffer[]): LoggedRequest {
  return {
    ...arrival,
    clientCertificate: shownBy(request),
    arrivedAtMs: performance.now(),
    method: request.method ?? '',
    url: request.url ?? '',
    httpVersion: request.httpVersion,
    rawHeaders: request.rawHeaders,
    get body() {
      return Buffer.concat(chunks);
    },
    get bodyComplete() {
      return request.complete;
    },
  };
}

const shownBy = ({ socket }: IncomingMessage): string | undefined =>
  socket instanceof TLSSocket
    ? String(socket.getPeerCertificate().subject?.CN ?? '') || undefined
    : undefined;

async function readInto(
  chunks: Buffer[],
  request: IncomingMessage,
  tell: () => void,
): Promise<Buffer | undefined> {
  try {
    for await (const chunk of request) {
      chunks.push(chunk);
      tell();
    }
    return Buffer.concat(chunks);
  } catch {
    return undefined;
  }
}
