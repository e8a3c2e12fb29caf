/**
 * What can go wrong at the bank on demand: one row each, with the defaults of its parameters and a sentence.
 *
 * A fault strikes `before-reading` (only the header has been read), `before-effect` (the request is read, but nothing
 * has happened), or `after-effect`: the payment exists, and only the answer goes wrong. The last is what a gateway must
 * fear most, and the default wherever the request could have been carried out.
 */
import type { OperationName } from '../pis/operations.ts';

/** How far a request has come when its fault strikes. */
export type Moment = 'before-reading' | 'before-effect' | 'after-effect';

/** What can be set about each fault; the defaults stand in `faultRows`. */
export interface FaultParameters {
  latency: { readonly ms?: number };
  status: {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  };
  'too-many-requests': { readonly retryAfterSeconds?: number };
  'rate-limit': {
    readonly perSecond?: number;
    readonly burst?: number;
    readonly retryAfterSeconds?: number;
  };
  reset: object;
  'reset-mid-answer': { readonly afterMs?: number };
  'close-before-answering': object;
  'half-answer': object;
  'half-chunked-answer': object;
  'never-answer': object;
  drip: { readonly everyMs?: number; readonly from?: 'head' | 'body' };
  garbage: { readonly bytes?: string };
  'two-content-lengths': object;
  'carriage-return-in-header': object;
  'huge-headers': { readonly bytes?: number };
  'two-answers': object;
  'switching-protocols': object;
  'interim-answers': { readonly statuses?: readonly number[] };
  'huge-answer': { readonly bytes?: number; readonly framing?: 'content-length' | 'chunked' };
  'gzip-answer': object;
  'corrupt-gzip-answer': object;
  'connection-close': object;
  'close-idle': { readonly afterMs?: number };
}

/** The faults by name. */
export type FaultName = keyof FaultParameters;

/** A fault of one kind, with those parameters that are not to be the defaults. */
type FaultOf<Name extends FaultName> = {
  readonly name: Name;
  readonly strikes?: Moment;
} & FaultParameters[Name];

/** A fault: its name, its parameters, and the moment it strikes. */
export type Fault = { [Name in FaultName]: FaultOf<Name> }[FaultName];

/** How often a fault strikes (default: until healed), and on which operations (default: on every request). */
export interface FaultScope {
  readonly times?: number;
  readonly operation?: OperationName | readonly OperationName[];
}

interface FaultRow<Name extends FaultName> {
  readonly does: string;
  readonly strikes: Moment;
  readonly defaults: Required<FaultParameters[Name]>;
}

/** All faults there are. */
export const faultRows: { readonly [Name in FaultName]: FaultRow<Name> } = {
  latency: {
    does: 'Waits, then goes on as if nothing were; adds to any other fault.',
    strikes: 'after-effect',
    defaults: { ms: 1_000 },
  },
  status: {
    does: 'Answers with any status, header fields and body; without a body with tppMessages.',
    strikes: 'before-effect',
    defaults: { status: 500, headers: {}, body: '' },
  },
  'too-many-requests': {
    does: 'Answers 429 with Retry-After.',
    strikes: 'before-effect',
    defaults: { retryAfterSeconds: 2 },
  },
  'rate-limit': {
    does: 'Answers 429 with Retry-After to what comes faster; all else is not struck.',
    strikes: 'before-effect',
    defaults: { perSecond: 5, burst: 5, retryAfterSeconds: 3 },
  },
  reset: { does: 'Resets the connection (RST) without an answer.', strikes: 'after-effect', defaults: {} },
  'reset-mid-answer': {
    does: 'Sends the head and half of the body, then resets the connection.',
    strikes: 'after-effect',
    defaults: { afterMs: 20 },
  },
  'close-before-answering': {
    does: 'Closes the connection (FIN) without an answer.',
    strikes: 'after-effect',
    defaults: {},
  },
  'half-answer': {
    does: 'Closes the connection when half of what Content-Length promised is sent.',
    strikes: 'after-effect',
    defaults: {},
  },
  'half-chunked-answer': {
    does: 'Closes the connection in the middle of a chunked body.',
    strikes: 'after-effect',
    defaults: {},
  },
  'never-answer': { does: 'Keeps the connection and says nothing.', strikes: 'after-effect', defaults: {} },
  drip: {
    does: 'Answers one byte at a time.',
    strikes: 'after-effect',
    defaults: { everyMs: 1_000, from: 'head' },
  },
  garbage: {
    does: 'Answers with bytes that are not HTTP, or with any bytes given; then closes.',
    strikes: 'after-effect',
    defaults: { bytes: 'SSH-2.0-OpenSSH_9.6\r\n' },
  },
  'two-content-lengths': {
    does: 'Answers with two Content-Length fields that contradict each other.',
    strikes: 'after-effect',
    defaults: {},
  },
  'carriage-return-in-header': {
    does: 'Answers with a lone CR in a header field, which some readers take for a line end.',
    strikes: 'after-effect',
    defaults: {},
  },
  'huge-headers': {
    does: 'Answers with a header block of that many bytes.',
    strikes: 'after-effect',
    defaults: { bytes: 40 * 1024 },
  },
  'two-answers': {
    does: 'Sends a second answer nobody asked for right behind the first one.',
    strikes: 'after-effect',
    defaults: {},
  },
  'switching-protocols': {
    does: 'Answers 101 Switching Protocols, unasked, and nothing more.',
    strikes: 'after-effect',
    defaults: {},
  },
  'interim-answers': {
    does: 'Sends interim answers before the proper one.',
    strikes: 'after-effect',
    defaults: { statuses: [100, 103] },
  },
  'huge-answer': {
    does: 'Answers 200 with a JSON body of that many bytes.',
    strikes: 'after-effect',
    defaults: { bytes: 16 * 1024 * 1024, framing: 'chunked' },
  },
  'gzip-answer': {
    does: 'Compresses the answer, whether or not that was acceptable.',
    strikes: 'after-effect',
    defaults: {},
  },
  'corrupt-gzip-answer': {
    does: 'Says the answer is gzip and sends a broken stream.',
    strikes: 'after-effect',
    defaults: {},
  },
  'connection-close': {
    does: 'Answers properly with Connection: close.',
    strikes: 'after-effect',
    defaults: {},
  },
  'close-idle': {
    does: 'Answers properly and closes the kept connection after that time.',
    strikes: 'after-effect',
    defaults: { afterMs: 0 },
  },
};

/** When this fault strikes: as asked, else as its row says. */
export const momentOf = (fault: Fault): Moment => fault.strikes ?? faultRows[fault.name].strikes;
