/** A receiver of webhooks on loopback, which records what it gets and answers as a test says. */

import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { TestScope } from './test-scope.ts';

export interface ReceivedWebhook {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The server name of the TLS connection. */
  readonly serverName: string | undefined;
}

export interface WebhookReceiver {
  readonly port: number;
  /** In the order of their arrival. */
  readonly received: readonly ReceivedWebhook[];
  /** How many connections were opened. */
  connections(): number;
  /** From now on. `answer` gets the number of the message at this receiver, from 1 on. */
  answerWith(answer: (response: ServerResponse, received: ReceivedWebhook, number: number) => void): void;
}

/** Answers 204 at first. @param tls serves https with this certificate */
export async function startWebhookReceiver(
  t: TestScope,
  tls?: { readonly cert: string; readonly key: string },
  host = '127.0.0.1',
): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  let connections = 0;
  let answer: Parameters<WebhookReceiver['answerWith']>[0] = (response) => response.writeHead(204).end();

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url: path = '', headers, socket } = request;
    const serverName = tls ? String((socket as TLSSocket).servername ?? '') : undefined; // a server of https has TLS sockets
    const webhook = { method, path, headers, body: Buffer.concat(chunks).toString(), serverName };
    answer(response, webhook, received.push(webhook));
  }
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void receive(request, response).catch(() => {}); // the client has disconnected
  const server = tls ? createHttpsServer(tls, listener) : createHttpServer(listener);
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    received,
    connections: () => connections,
    answerWith(next) {
      answer = next;
    },
  };
}
