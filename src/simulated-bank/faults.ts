/**
 * The faults that the bank can apply on demand: one row each, with the defaults of its parameters and a description.
 *
 * A fault is applied `before-reading` (only the header has been read), `before-effect` (the request has been read, but not
 * executed), or `after-effect`: the payment exists, and only the response fails. The last is the most dangerous case for a
 * gateway, and the default wherever the request could have been executed.
 */

import { type OperationName, operations } from '../pis/operations.ts';

/** The progress of a request at which its fault is applied. */
export type FaultMoment = 'before-reading' | 'before-effect' | 'after-effect';

/** The parameters of each fault; the defaults are in `faultRows`. */
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

/** A fault of one kind, with the parameters that differ from the defaults. */
type FaultOf<Name extends FaultName> = {
  readonly name: Name;
  readonly strikes?: FaultMoment;
} & FaultParameters[Name];

/** A fault: its name, its parameters, and when it is applied. */
export type Fault = { [Name in FaultName]: FaultOf<Name> }[FaultName];

/** How often a fault is applied (default: until cleared), and to which operations (default: to every request). */
export interface FaultScope {
  readonly times?: number;
  readonly operation?: OperationName | readonly OperationName[];
}

export interface FaultRow<Name extends FaultName> {
  readonly does: string;
  readonly strikes: FaultMoment;
  readonly defaults: Required<FaultParameters[Name]>;
}

/** All faults. */
export const faultRows: { readonly [Name in FaultName]: FaultRow<Name> } = {
  latency: {
    does: 'Waits, then continues normally; can be combined with one other fault.',
    strikes: 'after-effect',
    defaults: { ms: 1_000 },
  },
  status: {
    does: 'Responds with the given status, header fields and body; without a body with tppMessages.',
    strikes: 'before-effect',
    defaults: { status: 500, headers: {}, body: '' },
  },
  'too-many-requests': {
    does: 'Responds 429 with Retry-After.',
    strikes: 'before-effect',
    defaults: { retryAfterSeconds: 2 },
  },
  'rate-limit': {
    does: 'Responds 429 with Retry-After to requests above the rate; other requests are not affected.',
    strikes: 'before-effect',
    defaults: { perSecond: 5, burst: 5, retryAfterSeconds: 3 },
  },
  reset: { does: 'Resets the connection (RST) without a response.', strikes: 'after-effect', defaults: {} },
  'reset-mid-answer': {
    does: 'Sends the head and half of the body, then resets the connection.',
    strikes: 'after-effect',
    defaults: { afterMs: 20 },
  },
  'close-before-answering': {
    does: 'Closes the connection (FIN) without a response.',
    strikes: 'after-effect',
    defaults: {},
  },
  'half-answer': {
    does: 'Closes the connection when half of the announced bytes are sent.',
    strikes: 'after-effect',
    defaults: {},
  },
  'half-chunked-answer': {
    does: 'Closes the connection in the middle of a chunked body.',
    strikes: 'after-effect',
    defaults: {},
  },
  'never-answer': {
    does: 'Keeps the connection open and sends nothing.',
    strikes: 'after-effect',
    defaults: {},
  },
  drip: {
    does: 'Responds one byte at a time.',
    strikes: 'after-effect',
    defaults: { everyMs: 1_000, from: 'head' },
  },
  garbage: {
    does: 'Responds with bytes that are not HTTP, or with any bytes given; then closes.',
    strikes: 'after-effect',
    defaults: { bytes: 'SSH-2.0-OpenSSH_9.6\r\n' },
  },
  'two-content-lengths': {
    does: 'Responds with two Content-Length fields that contradict each other.',
    strikes: 'after-effect',
    defaults: {},
  },
  'carriage-return-in-header': {
    does: 'Responds with a lone CR in a header field, which some clients treat as a line end.',
    strikes: 'after-effect',
    defaults: {},
  },
  'huge-headers': {
    does: 'Responds with a header block of that many bytes.',
    strikes: 'after-effect',
    defaults: { bytes: 40 * 1024 },
  },
  'two-answers': {
    does: 'Sends an unsolicited second response directly after the first one.',
    strikes: 'after-effect',
    defaults: {},
  },
  'switching-protocols': {
    does: 'Sends an unsolicited 101 Switching Protocols, and nothing more.',
    strikes: 'after-effect',
    defaults: {},
  },
  'interim-answers': {
    does: 'Sends interim responses before the final one.',
    strikes: 'after-effect',
    defaults: { statuses: [100, 103] },
  },
  'huge-answer': {
    does: 'Responds 200 with a JSON body of that many bytes.',
    strikes: 'after-effect',
    defaults: { bytes: 16 * 1024 * 1024, framing: 'chunked' },
  },
  'gzip-answer': {
    does: 'Compresses the response, whether or not the request accepts it.',
    strikes: 'after-effect',
    defaults: {},
  },
  'corrupt-gzip-answer': {
    does: 'Declares gzip and sends a broken stream.',
    strikes: 'after-effect',
    defaults: {},
  },
  'connection-close': {
    does: 'Responds normally, with Connection: close.',
    strikes: 'after-effect',
    defaults: {},
  },
  'close-idle': {
    does: 'Responds normally and closes the idle connection after that time.',
    strikes: 'after-effect',
    defaults: { afterMs: 0 },
  },
};

/** When this fault is applied: as requested, or as its row says. */
export const momentOf = (fault: Fault): FaultMoment => fault.strikes ?? faultRows[fault.name].strikes;

const moments = ['before-reading', 'before-effect', 'after-effect'];
const operationNames: readonly string[] = operations.map(({ name }) => name);

/** Parses one fault or a list of them, each an object with `name`, its parameters, `strikes`, `times`, `operation`. */
export function parseFaults(
  value: unknown,
): readonly { readonly fault: Fault; readonly scope: FaultScope }[] {
  return [value].flat().map((one) => {
    if (typeof one !== 'object' || one === null) throw new TypeError('a fault is an object with a name');
    const { name, times, operation, ...parameters }: Record<string, unknown> = { ...one };
    if (!isFaultName(name))
      throw new TypeError(`unknown fault ${name}; allowed: ${Object.keys(faultRows).join(', ')}`);
    checkParameters(faultRows[name].defaults, parameters);
    const scope = { ...timesIn(times), ...operationIn(operation) };
    return { fault: { name, ...parameters } as Fault, scope }; // checked against the defaults of its row
  });
}

const isFaultName = (name: unknown): name is Fault['name'] =>
  typeof name === 'string' && Object.hasOwn(faultRows, name);

function checkParameters(defaults: object, { strikes, ...given }: Readonly<Record<string, unknown>>): void {
  if (strikes !== undefined && !moments.some((moment) => moment === strikes)) {
    throw new TypeError(`strikes must be one of ${moments.join(', ')}`);
  }
  const known = new Map(Object.entries(defaults));
  for (const [parameter, value] of Object.entries(given)) {
    if (!known.has(parameter)) {
      throw new TypeError(
        `unknown parameter ${parameter}; allowed: ${['strikes', ...known.keys()].join(', ')}`,
      );
    }
    const wanted = known.get(parameter);
    if (typeof value !== typeof wanted || Array.isArray(value) !== Array.isArray(wanted)) {
      throw new TypeError(`${parameter} must be a value such as ${JSON.stringify(wanted)}`);
    }
  }
}

function timesIn(times: unknown): FaultScope {
  if (times === undefined) return {};
  if (typeof times === 'number' && Number.isInteger(times) && times > 0) return { times };
  throw new TypeError('times must be a positive integer');
}

function operationIn(operation: unknown): FaultScope {
  if (operation === undefined) return {};
  const names: unknown[] = [operation].flat();
  if (names.every(isOperationName)) return { operation: names };
  throw new TypeError(`operation must be one of these, or a list: ${operationNames.join(', ')}`);
}

const isOperationName = (name: unknown): name is OperationName =>
  typeof name === 'string' && operationNames.includes(name);
