/** A stub of the bank over HTTP: the test decides each response, and when it is sent. */

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Field } from './fields.ts';
import { listen } from './ports.ts';
import { endWith, type TestScope } from './test-scope.ts';

export interface StubRequest {
  readonly method: string;
  readonly path: string;
  /** The value of a field, repeated values joined; empty if absent. @param name in lower case */
  header(name: string): string;
  readonly body: string;
}

/** Status 200 by default. Only `Content-Length` is added to the headers. */
export interface StubResponse {
  readonly status?: number;
  readonly headers?: readonly Field[];
  readonly body?: string | Buffer;
}

export interface StubBank {
  readonly baseUrl: string;
  readonly port: number;
  /** All requests received so far, in order. */
  readonly requests: readonly StubRequest[];
  /** Closes all connections, and accepts new ones. */
  dropConnections(): void;
  /** Stops listening and closes all connections: new ones are refused. */
  close(): Promise<void>;
}

/** Starts a bank that is closed at the end of the test. */
export async function startStubBank(
  life: TestScope,
  respond: (request: StubRequest) => StubResponse | Promise<StubResponse>,
): Promise<StubBank> {
  const requests: StubRequest[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const request = stubRequestOf(incoming, await text(incoming));
    requests.push(request);
    const { status = 200, headers = [], body = '' } = await respond(request);
    const length = status === 204 ? [] : [['Content-Length', String(Buffer.byteLength(body))]];
    outgoing.writeHead(status, [...headers, ...length].flat()).end(body);
  });
  const port = await listen(server);
  const close = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  endWith(life, close);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    requests,
    close,
    dropConnections: () => server.closeAllConnections(),
  };
}

/** A status in JSON. @param more further members of the body */
export const statusResponse = (
  transactionStatus: string,
  more: object = {},
  headers: readonly Field[] = [],
): StubResponse => ({
  headers: [['Content-Type', 'application/json'], ...headers],
  body: JSON.stringify({ transactionStatus, ...more }),
});

function stubRequestOf({ method = '', url = '', headers }: IncomingMessage, body: string): StubRequest {
  const header = (name: string) => String(headers[name] ?? '');
  return { method, path: url, header, body };
}
