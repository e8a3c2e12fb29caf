/** Every request that reached the bank, recorded when its header arrives, so that requests that break later are included. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { OperationName } from '../pis/operations.ts';
import type { FaultName } from './faults.ts';

/** One received request; `body` and `bodyComplete` grow until it is read. */
export interface LoggedRequest {
  /** The number of its TCP connection, counted from 1. */
  readonly connection: number;
  /** The subject's common name (CN) of the client certificate, if any. */
  readonly clientCertificate: string | undefined;
  /** Milliseconds of the machine's monotonic clock (`performance.now()`). */
  readonly arrivedAtMs: number;
  readonly method: string;
  /** The request target, unchanged. */
  readonly url: string;
  readonly httpVersion: string;
  /** Names and values in turn, in their original case and order. */
  readonly rawHeaders: readonly string[];
  /** `undefined` if the request was none of the eight operations. */
  readonly operation: OperationName | undefined;
  /** The fault that was applied, if any. */
  readonly fault: FaultName | undefined;
  /** The part of the body that has been read so far. */
  readonly body: Buffer;
  readonly bodyComplete: boolean;
}

interface ArrivalInfo {
  readonly connection: number;
  readonly operation: OperationName | undefined;
  readonly fault: FaultName | undefined;
}

/** The log of one bank. */
export interface BankRequestLog {
  /** Records a request. @returns a function that reads its body: `undefined` if the client disconnects before its end */
  arrived(request: IncomingMessage, arrival: ArrivalInfo): () => Promise<Buffer | undefined>;
  entries(): readonly LoggedRequest[];
  clear(): void;
}

/** Beyond this number the older half is removed, so that a bank can run for days; no test reaches it. */
const maxEntries = 200_000;

/** @param onChange called whenever an entry was added or changed */
export function createRequestLog(tell: () => void): BankRequestLog {
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
