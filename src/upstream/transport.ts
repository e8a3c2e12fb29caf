/**
 * The way to one environment of the bank: http-proxy-middleware, made a promise.
 *
 * The proxy is given a request and a response of our own, detached from the TPP's connection: a TPP that
 * leaves cannot tear down a payment on its way, and what goes out is exactly what was decided before.
 * Deadlines, answers and errors are ours (exchange.ts); the proxy only carries.
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Stream } from 'node:stream';
import { createProxyMiddleware } from 'http-proxy-middleware';
import type { Environment } from '../flow/environment.ts';
import type { GatewayError } from '../flow/errors.ts';
import { createInStep } from '../flow/in-step.ts';
import { createRoll } from '../flow/roll.ts';
import type { CallFact, Note } from '../flow/trail.ts';
import { type HeaderFields, lowerCase } from '../pis/headers.ts';
import type { Lane } from '../pis/operations.ts';
import type { Pool } from './agent.ts';
import {
  type BankAnswer,
  type Exchange,
  followExchange,
  type OutboundFence,
  type Trace,
} from './exchange.ts';
import { mayRetry } from './retry.ts';
import type { Seal } from './signing.ts';

/** What is sent, byte for byte. */
export interface OutboundRequest {
  /** Decides about the connection it takes, and whether it may be sent once more. */
  readonly lane: Lane;
  readonly method: string;
  /** The whole path, base path included. */
  readonly path: string;
  /** End-to-end fields; `Host` and the framing are added on the way. */
  readonly headers: HeaderFields;
  readonly body: Buffer;
  /** When the answer must be complete: milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
  /** Holds the request back until a connection is made and this is passed. */
  readonly fence?: OutboundFence;
  /** Told of every attempt. */
  readonly note?: Note;
}

export interface Transport {
  /**
   * Sends one request; redirects are not followed. It is sent once more where the bank cannot act twice (retry.ts).
   *
   * @throws GatewayError UPSTREAM_UNREACHED, QUEUE_TIMEOUT (nothing was sent), UPSTREAM_MALFORMED or
   *   OUTCOME_UNKNOWN (the bank may have seen it)
   */
  send(request: OutboundRequest): Promise<BankAnswer>;
}

interface UnderWay {
  readonly exchange: Exchange;
  /** Milliseconds of `performance.now()`. */
  readonly deadlineAtMs: number;
}

interface Limits {
  /** How long making a connection may take, in milliseconds. */
  readonly connectMs: number;
  /** A write takes a connection only if it was idle for less, in milliseconds. */
  readonly writeSocketIdleMs: number;
}

/** A transport to `environment`. @param poolNow whose connections each attempt takes: it changes with the certificate */
export function createTransport(
  environment: Environment,
  poolNow: () => Pool,
  { connectMs, writeSocketIdleMs }: Limits,
): Transport {
  /** Each has a connection or waits for one. */
  const underWay = createRoll<UnderWay>();
  const inStep = createInStep();
  const carriers = new WeakMap<Pool, ReturnType<typeof carrierOver>>();

  const carrierOver = (agent: Pool) =>
    createProxyMiddleware({
      target: new URL(environment.origin),
      changeOrigin: true,
      agent,
      selfHandleResponse: true,
      ejectPlugins: true,
      buffer: new NoBody(),
      plugins: [
        (proxy) => {
          proxy.on('proxyReq', (sent, request) => exchangeOf(request)?.began(sent));
          proxy.on('proxyRes', (answer, request) => exchangeOf(request)?.answered(answer));
          proxy.on('econnreset', (cause, request) => exchangeOf(request)?.failed(cause));
          proxy.on('error', (cause, request) => exchangeOf(request)?.failed(cause));
        },
      ],
    });

  /** A write that is only listened for gives its connection to a call in time: the one listened for longest. */
  function makeRoom(): void {
    const nowMs = performance.now();
    underWay
      .all()
      .find(({ deadlineAtMs }) => deadlineAtMs < nowMs)
      ?.exchange.giveUp();
  }

  function attempt(
    outbound: OutboundRequest,
    number: number,
    done: (answer: BankAnswer) => void,
    lost: (error: GatewayError, trace: Trace) => void,
  ): void {
    const beganAtMs = performance.now();
    const over = (trace: Trace, outcome: Pick<CallFact, 'status' | 'error'>) => {
      leave();
      outbound.note?.({ ...callOf(number, beganAtMs, trace), ...outcome });
    };
    const pool = poolNow();
    const carry = carriers.get(pool) ?? carrierOver(pool);
    carriers.set(pool, carry);
    if (underWay.size() >= pool.maxSockets) makeRoom();
    if (outbound.lane === 'write') pool.closeIdle(writeSocketIdleMs);
    const request = detachedRequest(outbound);
    const response = new ServerResponse(request);
    // The proxy destroys its request when its response closes early: the only handle it gives before a socket is there.
    const abandon = () => response.emit('close');
    const { deadlineAtMs, fence } = outbound;
    const limits = { deadlineAtMs, connectMs, ...(fence && { fence }) };
    const exchange = followExchange(limits, {
      done(answer, trace) {
        over(trace, { status: answer.status });
        inStep(() => done(answer));
      },
      lost(error, trace) {
        over(trace, { error: error.code });
        lost(error, trace);
      },
      release: (sent) => sent.end(outbound.body),
      abandon,
    });
    const leave = underWay.enter({ exchange, deadlineAtMs });
    request.exchange = exchange;
    void carry(request, response);
  }

  return {
    send: (outbound) =>
      new Promise((done, lost) => {
        const { lane, deadlineAtMs } = outbound;
        attempt(outbound, 1, done, (error, trace) => {
          const failed = { lane, error, ...trace, remainingMs: deadlineAtMs - performance.now() };
          if (!mayRetry(failed)) return lost(error);
          poolNow().closeIdle(0); // the other kept connections may be as dead: once more is on a new one
          outbound.note?.({ what: 'retry', why: error.code });
          attempt(outbound, 2, done, lost);
        });
      }),
  };
}

function callOf(attempt: number, beganAtMs: number, trace: Trace): CallFact {
  const { reusedSocket, connectMs, firstByteMs } = trace;
  const made = reusedSocket ? 'reused' : 'new';
  return {
    what: 'call',
    attempt,
    connection: connectMs === undefined ? 'none' : made,
    ...(connectMs !== undefined && { connectMs }),
    ...(firstByteMs !== undefined && { firstByteMs }),
    totalMs: performance.now() - beganAtMs,
  };
}

/** The transport with the seal of the moment on every request. */
export const sealed = (transport: Transport, sealNow: () => Seal): Transport => ({
  send: async (outbound) => transport.send({ ...outbound, headers: await sealNow().seal(outbound) }),
});

/** Never connected: it only gives the detached messages the shape that node:http expects. */
const nowhere = new Socket();

/** A request that comes from nobody's connection. */
class DetachedRequest extends IncomingMessage {
  exchange?: Exchange;
}

const exchangeOf = (request: unknown) => (request instanceof DetachedRequest ? request.exchange : undefined);

function detachedRequest({ method, path, headers, body }: OutboundRequest): DetachedRequest {
  const request = new DetachedRequest(nowhere);
  request.method = method;
  request.url = path;
  request.headers = joined(headers);
  if (body.length > 0 || method === 'POST') request.headers['content-length'] = String(body.length);
  return request;
}

/** Where the proxy would take the body from. It brings nothing: head and body are written when the exchange lets them go. */
class NoBody extends Stream {
  override pipe<Sent>(sent: Sent): Sent {
    return sent;
  }
}

/** The form node:http takes: one entry a name, repeated fields as a list in their order. */
function joined(fields: HeaderFields): Record<string, string | string[]> {
  const byName: Record<string, string | string[]> = Object.create(null);
  const written = new Map<string, string>(); // by the name in lower case
  for (const [name, value] of fields) {
    const known = written.get(lowerCase(name));
    if (known === undefined) {
      written.set(lowerCase(name), name);
      byName[name] = value;
    } else byName[known] = [byName[known] ?? [], value].flat();
  }
  return byName;
}
