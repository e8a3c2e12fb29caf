/** The TPP client of the tests: it sends exactly the fields that it is given, and returns the response unchanged. */

import { randomUUID } from 'node:crypto';
import { type Agent, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import type { Field } from './fields.ts';
import { until, within } from './within.ts';

/** One request; fields keep their order, case and repetitions. */
export interface Call {
  readonly method: string;
  /** The request target, sent unchanged. */
  readonly path: string;
  /** Without `Host` and the framing. */
  readonly headers?: readonly Field[];
  /** The `X-Request-ID` to add, by default a new one if `headers` has none; or `as given`, to add none. */
  readonly requestId?: string;
  readonly body?: string | Buffer | undefined;
  /** Closes the connection when it is aborted; the promise of the response then rejects. */
  readonly signal?: AbortSignal;
  /** The longest time to wait for the whole answer, in milliseconds; by default longer than any deadline of the gateway. */
  readonly maxMs?: number;
}

export type Method = 'GET' | 'POST' | 'DELETE';

/** One answer. */
export interface Reply {
  readonly status: number;
  readonly fields: readonly Field[];
  /** The bytes, whatever their content coding. */
  readonly body: Buffer;
  readonly text: string;
  /** The first value of a field, in any case. */
  header(name: string): string | undefined;
}

/** For how long `call` repeats a request that is refused with OVERLOADED. */
const maxOverloadMs = 60_000;

/**
 * Sends a request and waits for the whole answer. While the gateway refuses it with OVERLOADED, which a busy machine can
 * cause in any test, sends it again with the same X-Request-ID after `Retry-After`: nothing was sent to the bank.
 *
 * @param agent keeps connections; without one, this request has a connection of its own
 */
export async function call(origin: string, one: Call, agent?: Agent): Promise<Reply> {
  const sameAgain = { ...one, requestId: one.requestId ?? randomUUID() };
  const deadline = performance.now() + maxOverloadMs;
  for (;;) {
    const reply = await callOnce(origin, sameAgain, agent);
    if (reply.header('Penstock-Error') !== 'OVERLOADED' || performance.now() > deadline) return reply;
    const retryAfterMs = Number(reply.header('Retry-After')) * 1_000;
    await setTimeout(retryAfterMs, undefined, one.signal && { signal: one.signal });
  }
}

/** As `call`, but returns every refusal: for tests about load shedding. The error of a request that an agent sent as the first one of a connection has `isFirstOnConnection`. */
export function callOnce(
  origin: string,
  { method, path, headers = [], body, requestId = randomUUID(), signal, maxMs = 60_000 }: Call,
  agent?: Agent,
): Promise<Reply> {
  const fields: readonly Field[] = [
    ['Host', new URL(origin).host],
    ...(requestId === 'as given' || has(headers, 'x-request-id')
      ? []
      : ([['X-Request-ID', requestId]] as const)),
    ...headers,
    ...(body === undefined ? [] : ([['Content-Length', String(Buffer.byteLength(body))]] as const)),
    ...(agent ? [] : ([['Connection', 'close']] as const)),
  ];
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const { hostname, port, protocol } = new URL(origin);
  const request = protocol === 'https:' ? requestHttps : requestHttp;
  const sent = request({
    hostname,
    port,
    method,
    path,
    headers: fields.flat(),
    agent: agent ?? false,
    ...(signal && { signal }),
  });
  sent
    .once('error', (error) =>
      reject(Object.assign(error, { isFirstOnConnection: agent !== undefined && !sent.reusedSocket })),
    )
    .once('response', (answer) => {
      buffer(answer).then((bytes) => {
        const { rawHeaders, statusCode = 0 } = answer;
        resolve(replyOf(statusCode, pairs(rawHeaders), bytes));
      }, reject);
    });
  sent.end(body === undefined ? undefined : Buffer.from(body)); // a text would have Node write the fields in UTF-8, too
  return within(maxMs, `an answer to ${method} ${path}`, promise);
}

/**
 * Repeats a request, as a TPP would, while the gateway refuses it with this error code because the machine is busy.
 * Nothing was sent to the bank.
 */
export async function repeatWhile(
  code: 'STATE_UNAVAILABLE' | 'QUEUE_TIMEOUT',
  ask: () => Promise<Reply>,
): Promise<Reply> {
  let reply = await ask();
  await until(20_000, `the gateway takes the request instead of answering ${code}`, async () => {
    if (reply.header('Penstock-Error') !== code) return true;
    reply = await ask();
    return false;
  });
  return reply;
}

/** The object in a JSON body. */
export function jsonOf({ text }: Pick<Reply, 'text'>): Readonly<Record<string, unknown>> {
  return JSON.parse(text);
}

/** The pairs of Node's flat list. */
export const pairs = (rawHeaders: readonly string[]): readonly Field[] =>
  rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : [],
  );

const has = (fields: readonly Field[], wanted: string) =>
  fields.some(([name]) => name.toLowerCase() === wanted);

function replyOf(status: number, fields: readonly Field[], body: Buffer): Reply {
  const header = (name: string) => fields.find(([field]) => field.toLowerCase() === name.toLowerCase())?.[1];
  return { status, fields, body, text: body.toString('utf8'), header };
}
