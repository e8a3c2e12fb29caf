/**
 * The way to one environment of the bank: http-proxy-middleware, made a promise.
 *
 * The proxy is given a request and a response of our own, detached from the TPP's connection: a TPP that
 * leaves cannot tear down a payment on its way, and what goes out is exactly what was decided before.
 * Deadlines, answers and errors are ours (exchange.ts); the proxy only carries.
 */

import { type Agent, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createProxyMiddleware } from 'http-proxy-middleware';
import type { Environment } from '../flow/environment.ts';
import type { HeaderFields } from '../pis/headers.ts';
import { type BankAnswer, type Exchange, followExchange, type OutboundFence } from './exchange.ts';

/** What is sent, byte for byte. */
export interface OutboundRequest {
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
}

export interface Transport {
  /**
   * Sends one request, once; redirects are not followed, nothing is repeated.
   *
   * @throws GatewayError UPSTREAM_UNREACHED, QUEUE_TIMEOUT (nothing was sent), UPSTREAM_MALFORMED or
   *   OUTCOME_UNKNOWN (the bank may have seen it)
   */
  send(request: OutboundRequest): Promise<BankAnswer>;
}

/** A transport to `environment` over the connections of `agent`. */
export function createTransport(environment: Environment, agent: Agent, connectMs: number): Transport {
  const exchanges = new WeakMap<IncomingMessage, Exchange>();

  const carry = createProxyMiddleware({
    target: environment.origin,
    changeOrigin: true,
    agent,
    selfHandleResponse: true,
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        proxy.on('proxyReq', (sent, request) => exchanges.get(request)?.began(sent));
        proxy.on('proxyRes', (answer, request) => exchanges.get(request)?.answered(answer));
        proxy.on('econnreset', (cause, request) => exchanges.get(request)?.failed(cause));
        proxy.on('error', (cause, request) => request && exchanges.get(request)?.failed(cause));
      },
    ],
  });

  return {
    send: (outbound) =>
      new Promise((done, lost) => {
        const request = detachedRequest(outbound);
        const response = new ServerResponse(request);
        // The proxy destroys its request when its response closes early: the only handle it gives before a socket is there.
        const abandon = () => response.emit('close');
        const { deadlineAtMs, fence } = outbound;
        // The proxy begins to write, the header included, with what the request's body brings.
        const release = () => bring(request, outbound.body);
        const limits = { deadlineAtMs, connectMs, ...(fence && { fence }) };
        exchanges.set(request, followExchange(limits, { done, lost, release, abandon }));
        void carry(request, response);
      }),
  };
}

/** Never connected: it only gives the detached messages the shape that node:http expects. */
const nowhere = new Socket();

function detachedRequest({ method, path, headers, body }: OutboundRequest): IncomingMessage {
  const request = new IncomingMessage(nowhere);
  request.method = method;
  request.url = path;
  request.headers = joined(headers);
  if (body.length > 0 || method === 'POST') request.headers['content-length'] = String(body.length);
  return request;
}

function bring(request: IncomingMessage, body: Buffer): void {
  if (body.length > 0) request.push(body);
  request.push(null);
  request.complete = true;
}

/** The form node:http takes: one entry a name, repeated fields as a list in their order. */
function joined(fields: HeaderFields): Record<string, string | string[]> {
  const byName = new Map<string, [name: string, values: string[]]>();
  for (const [name, value] of fields) {
    const entry = byName.get(name.toLowerCase());
    if (entry) entry[1].push(value);
    else byName.set(name.toLowerCase(), [name, [value]]);
  }
  return Object.fromEntries(
    Array.from(byName.values(), ([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}
