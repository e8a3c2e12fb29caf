/** A bank of the test's own: whatever is asked, the test itself decides the answer, and may take its time. */

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Field } from './fields.ts';
import type { Life } from './life.ts';
import { listen } from './ports.ts';

/** What came to the bank. */
export interface StubRequest {
  readonly method: string;
  readonly path: string;
  /** The value of a field, repetitions joined; empty if it did not come. `name` in lower case. */
  header(name: string): string;
}

/** What the bank says; 200 unless told otherwise, and nothing but the length beside these fields. */
export interface StubResponse {
  readonly status?: number;
  readonly headers?: readonly Field[];
  readonly body?: string | Buffer;
}

export interface StubBank {
  readonly baseUrl: string;
  readonly port: number;
  /** Everything that came so far, in order. */
  readonly requests: readonly StubRequest[];
  /** Stops listening and drops all connections: from then on it refuses them. */
  close(): Promise<void>;
}

/** A started bank; closed at the end. @param says may keep the asker waiting */
export async function startStubBank(
  life: Life,
  says: (asked: StubRequest) => StubResponse | Promise<StubResponse>,
): Promise<StubBank> {
  const all: StubRequest[] = [];
  const server = createServer(async (incoming, answer) => {
    const asked = askedBy(incoming);
    await text(incoming);
    all.push(asked);
    const { status = 200, headers = [], body = '' } = await says(asked);
    const length = status === 204 ? [] : [['Content-Length', String(Buffer.byteLength(body))]];
    answer.writeHead(status, [...headers, ...length].flat()).end(body);
  });
  const port = await listen(server);
  const close = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  life.after(close);
  return { baseUrl: `http://127.0.0.1:${port}`, port, requests: all, close };
}

/** A status in JSON, with whatever else stands beside it. */
export const statusResponse = (
  transactionStatus: string,
  more: object = {},
  headers: readonly Field[] = [],
): StubResponse => ({
  headers: [['Content-Type', 'application/json'], ...headers],
  body: JSON.stringify({ transactionStatus, ...more }),
});

function askedBy({ method = '', url = '', headers }: IncomingMessage): StubRequest {
  const header = (name: string) => String(headers[name] ?? '');
  return { method, path: url, header };
}
