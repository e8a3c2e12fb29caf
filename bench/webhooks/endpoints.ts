/** The endpoints of the benchmark: an https server on all addresses of its network, which records messages and forbidden connections. */

import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Server, type Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { createAuthority } from '../../test/kit/openssl.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { type EndpointKind, endpointKinds } from './endpoint-kinds.ts';
import { startNameServer } from './name-server.ts';
import { forbiddenAddresses, publicV4, publicV6 } from './own-network.ts';

/** A message that has arrived. Times are milliseconds of `performance.now()`. */
export interface Arrival {
  readonly atMs: number;
  readonly kind: string;
  readonly client: number;
  /** Of the subscription. */
  readonly number: number;
  readonly id: string;
  readonly body: WebhookBody;
  /** Why it is not a valid message; `undefined` if it is one. */
  readonly fault: string | undefined;
  /** The status of the response, once it is sent. */
  status: number | undefined;
  /** When the response was sent, or the connection was lost before that. */
  endMs: number | undefined;
}

export interface WebhookBody {
  readonly paymentId: string;
  readonly transactionStatus: string;
  readonly final: boolean;
  readonly sequence: number;
}

export interface Endpoints {
  readonly arrivals: readonly Arrival[];
  /** The file with the authority that the gateways have to trust. */
  readonly caFile: string;
  /** A server that no gateway may use as its proxy. */
  readonly proxyUrl: string;
  readonly connections: { readonly public: number; readonly forbidden: number };
  questions(): number;
  /** From now on, endpoints accept messages that they have not accepted for a while. */
  recover(): void;
}

export const urlOf = ({ name, isUntrusted }: EndpointKind, client: number): string =>
  `https://${name}-${client}.${isUntrusted ? 'other.example' : 'tpp.example'}/hooks`;

/** Any of these may sign, as during a rotation. @param secretsOf the secrets of a client, `whsec_` and base64 */
export async function startEndpoints(
  life: TestScope,
  secretsOf: (client: number) => readonly string[],
): Promise<Endpoints> {
  const arrivals: Arrival[] = [];
  const earlier = new Map<string, number>();
  const connections = { public: 0, forbidden: 0 };
  let hasRecovered = false;

  function receive(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const { headers, url = '', method = '' } = request;
    const [, name = '', client = ''] = /^([a-z-]+)-(\d+)\./.exec(headers.host ?? '') ?? [];
    const kind = endpointKinds.find((one) => one.name === name);
    const [, number = ''] = /^\/hooks\/(\d+)$/.exec(url) ?? [];
    const id = String(headers['webhook-id']);
    const arrival: Arrival = {
      atMs: performance.now(),
      kind: name,
      client: Number(client),
      number: number === '' ? -1 : Number(number),
      id,
      ...checked(request, body, secretsOf(Number(client))),
      status: undefined,
      endMs: undefined,
    };
    arrivals.push(arrival);
    response.on('close', () => {
      arrival.endMs = performance.now();
      if (response.headersSent) arrival.status = response.statusCode;
    });
    response.on('error', () => {}); // the gateway has closed the connection
    const attempt = { earlier: earlier.get(id) ?? 0, hasRecovered };
    earlier.set(id, attempt.earlier + 1);
    if (!kind || number === '' || method !== 'POST') response.writeHead(404).end();
    else if (kind.answer) kind.answer(response, attempt, request);
    else response.writeHead(204).end();
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {});
    request.on('end', () => receive(request, response, Buffer.concat(chunks)));
  };
  const authority = createAuthority(life, 'endpoints');
  const trusted = authority.issue('tpp', {
    extensions: 'subjectAltName = DNS:*.tpp.example',
  });
  const server = createHttpsServer({ cert: trusted.cert, key: trusted.key }, listener);
  server.on('tlsClientError', () => {}); // the gateway does not trust the certificate
  await listenOnAll(life, server, 443, connections);
  await listenOnAll(life, createHttpServer(listener), 80, connections);
  const proxy = createHttpServer(refuseAll);
  await listenOnAll(life, proxy, proxyPort, connections);
  await checkCounts(connections);

  const questionsFor = new Map<string, number>();
  const questions = await startNameServer(life, '127.0.0.1', (name, family) => {
    const [, kindName = '', client = ''] = /^([a-z-]+)-(\d+)\./.exec(name) ?? [];
    const kind = endpointKinds.find((one) => one.name === kindName);
    const key = `${family} ${name}`;
    const count = questionsFor.get(key) ?? 0;
    questionsFor.set(key, count + 1);
    if (!kind) return [];
    if (kind.addresses) return kind.addresses(family, { count, client: Number(client), hasRecovered });
    return [family === 4 ? publicV4 : publicV6];
  });
  return {
    arrivals,
    caFile: authority.certFile,
    proxyUrl: `http://127.0.0.1:${proxyPort}`,
    connections,
    questions,
    recover() {
      hasRecovered = true;
    },
  };
}

const proxyPort = 3128;
const refuseAll = (_request: IncomingMessage, response: ServerResponse) => response.writeHead(502).end();

/** The connections are counted by the address that they were opened to. */
async function listenOnAll(
  life: TestScope,
  server: Server & { closeAllConnections(): void },
  port: number,
  connections: { public: number; forbidden: number },
): Promise<void> {
  server.on('connection', ({ localAddress = '' }: Socket) => {
    const isPublic = [publicV4, publicV6].includes(localAddress.replace('::ffff:', ''));
    connections[isPublic && port !== proxyPort ? 'public' : 'forbidden'] += 1;
  });
  server.listen(port, '::');
  await once(server, 'listening');
  life.after(() => {
    server.close();
    server.closeAllConnections();
  });
}

/** That no connection is counted proves something only if connections are counted: opens one to each address. */
async function checkCounts(connections: { public: number; forbidden: number }): Promise<void> {
  const addresses = [...forbiddenAddresses, '127.0.0.1', '::1'];
  for (const port of [443, 80, proxyPort])
    for (const address of addresses) {
      const socket = connect(port, address);
      await once(socket, 'connect');
      socket.destroy();
    }
  const wanted = 3 * addresses.length;
  for (let tries = 0; connections.forbidden < wanted && tries < 100; tries++)
    await new Promise((resolve) => setTimeout(resolve, 20));
  if (connections.forbidden !== wanted)
    throw new Error(`${connections.forbidden} of ${wanted} forbidden connections were counted`);
  connections.forbidden = 0;
}

/** Checks a message with an independent implementation of Standard Webhooks. */
function checked(
  { headers }: IncomingMessage,
  body: Buffer,
  secrets: readonly string[],
): Pick<Arrival, 'body' | 'fault'> {
  const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const errors = secrets.flatMap((secret) => {
    try {
      new Webhook(secret).verify(body.toString(), fields);
      return [];
    } catch (thrown) {
      return [String(thrown)];
    }
  });
  const hasOneId = headers['x-request-id'] === headers['webhook-id'];
  const fault = errors[0] ?? (hasOneId ? undefined : 'X-Request-ID differs from webhook-id');
  try {
    const parsed: WebhookBody = JSON.parse(body.toString()); // used after the signature was checked
    return { body: parsed, fault };
  } catch {
    return { body: { paymentId: '', transactionStatus: '', final: false, sequence: 0 }, fault: 'no JSON' };
  }
}
