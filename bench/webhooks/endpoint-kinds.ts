/** The kinds of endpoints that receive webhooks in the benchmark: how their names resolve, and how they answer. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { publicV4, publicV6 } from './own-network.ts';

/** One message that an endpoint gets. */
export interface Attempt {
  /** How often its message has arrived before. */
  readonly earlier: number;
  /** Whether the endpoints that recover have recovered. */
  readonly hasRecovered: boolean;
}

export interface EndpointKind {
  /** Of the host; `-` and the number of the client follow. */
  readonly name: string;
  /** Whether it accepts all messages in the end. */
  readonly accepts: boolean;
  /** For its share of the subscriptions; 1 if it is not there. */
  readonly weight?: number;
  /** Whether the certificate of the endpoint is for its name. */
  readonly isUntrusted?: boolean;
  /** @param count how many questions there were for this name and family. @returns `undefined` to leave it without an answer */
  readonly addresses?: (
    family: 4 | 6,
    question: { readonly count: number; readonly client: number; readonly hasRecovered: boolean },
  ) => readonly string[] | undefined;
  /** By default 204. An answer that is not sent leaves the attempt open. */
  readonly answer?: Answer;
}

type Answer = (response: ServerResponse, attempt: Attempt, request: IncomingMessage) => void;

const accept = (response: ServerResponse) => response.writeHead(204).end();
const refuse = (status: number) => (response: ServerResponse) => response.writeHead(status).end();

/** An endpoint that answers otherwise until it recovers. */
const untilRecovery =
  (act: (response: ServerResponse, request: IncomingMessage) => void): Answer =>
  (response, { hasRecovered }, request) =>
    hasRecovered ? accept(response) : act(response, request);

/** One address each for the clients; two of them are in one family only. */
const forbiddenForms: readonly string[] = [
  ...['10.0.0.1', '169.254.169.254', '127.0.0.1', '::1', '::ffff:a00:1'],
  ...['64:ff9b::a00:1', 'fd00::1', '100.64.0.1', '0.0.0.0', '192.168.0.1'],
];

const ofFamily = (family: 4 | 6, addresses: readonly string[]) =>
  addresses.filter((address) => address.includes(':') === (family === 6));

/** Longer than a lease of the gateway without its extension, and shorter than `notifications.timeout`. Milliseconds. */
const slowMs = 8_000;

export const endpointKinds: readonly EndpointKind[] = [
  { name: 'works', accepts: true, weight: 2 },
  {
    name: 'slow',
    accepts: true,
    weight: 2,
    answer: (response) => void setTimeout(accept, slowMs, response),
  },
  { name: 'fails', accepts: true, answer: untilRecovery(refuse(503)) },
  {
    name: 'fails-at-first',
    accepts: true,
    answer: (response, { earlier }) => (earlier === 0 ? refuse(500) : accept)(response),
  },
  { name: 'hangs', accepts: true, answer: untilRecovery(() => {}) },
  { name: 'resets', accepts: true, answer: untilRecovery((_response, { socket }) => socket.destroy()) },
  {
    name: 'redirects',
    accepts: true,
    answer: untilRecovery((response) => {
      response.writeHead(307, { Location: 'https://private-0.tpp.example/' }).end();
    }),
  },
  {
    name: 'endless',
    accepts: true,
    answer(response) {
      response.writeHead(200);
      const timer = setInterval(() => response.write(Buffer.alloc(16_384)), 10);
      response.on('close', () => clearInterval(timer));
    },
  },
  {
    name: 'nameless', // no name server answers
    accepts: true,
    addresses: (family, { hasRecovered }) => (hasRecovered ? ofFamily(family, [publicV4]) : undefined),
  },
  {
    name: 'changing',
    accepts: true,
    addresses: (family, { count, hasRecovered }) =>
      ofFamily(family, [count % 2 === 0 || hasRecovered ? publicV4 : '10.0.0.1']),
  },
  {
    name: 'mixed',
    accepts: true,
    addresses: (family, { hasRecovered }) =>
      ofFamily(family, [publicV4, hasRecovered ? publicV6 : 'fd00::1']),
  },
  { name: 'gone', accepts: false, answer: refuse(410) },
  {
    name: 'private',
    accepts: false,
    addresses: (family, { client }) =>
      ofFamily(family, [forbiddenForms[client % forbiddenForms.length] ?? '']),
  },
  { name: 'untrusted', accepts: false, isUntrusted: true },
];
