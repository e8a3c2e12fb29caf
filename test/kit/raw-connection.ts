/** A raw TCP connection, for bytes that no HTTP client sends. */

import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { until, within } from './within.ts';

/** For how long `sendRaw` repeats a request that is refused with OVERLOADED. */
const maxOverloadMs = 60_000;

/** A response as received. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawConnection {
  /** Text is sent as Latin-1: one byte per character. */
  send(bytes: string | Buffer): void;
  /** Waits until the kernel has accepted all bytes. */
  sent(ms?: number): Promise<void>;
  /** The next complete response on this connection, without interim responses. */
  answer(): Promise<RawAnswer>;
  /** Received bytes that `answer` has not returned yet. */
  unread(): string;
  /** Waits until the other side has closed. */
  closed(ms?: number): Promise<void>;
  /** Sends FIN. */
  end(): void;
  /** Closes the connection immediately. */
  destroy(): void;
}

/** A connection to a port of this machine. */
export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  let over = false;
  socket.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  socket
    .on('error', () => {})
    .on('close', () => {
      over = true;
    });
  socket.on('end', () => {
    over = true;
  });
  const connected = new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  await within(20_000, 'a connection', connected).catch((error) => {
    socket.destroy();
    throw error;
  });

  return {
    send: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    sent: (ms = 5_000) => until(ms, 'all is sent', () => socket.writableLength === 0),
    async answer() {
      let whole: ReturnType<typeof firstAnswer>;
      await until(10_000, 'a whole answer has come', () => {
        whole = firstAnswer(received);
        if (!whole && over)
          throw new Error(`the connection closed after ${JSON.stringify(received.slice(0, 200))}`);
        return whole !== undefined;
      });
      received = received.slice(whole?.length ?? 0);
      return whole?.answer ?? { status: 0, headers: new Map(), body: '' };
    },
    unread: () => received,
    closed: (ms = 5_000) => until(ms, 'the other side has closed', () => over),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  };
}

/** A connection that is closed when `use` ends, so that no gateway waits for it. */
export async function onConnection<Value>(
  port: number,
  use: (connection: RawConnection) => Promise<Value>,
): Promise<Value> {
  const connection = await connectRaw(port);
  try {
    return await use(connection);
  } finally {
    connection.destroy();
  }
}

/**
 * Sends one request on a new connection. Sends it again after `Retry-After` while the gateway refuses it with OVERLOADED:
 * nothing was sent to the bank.
 */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const deadline = performance.now() + maxOverloadMs;
  for (;;) {
    const answer = await onConnection(port, (connection) => {
      connection.send(bytes);
      return connection.answer();
    });
    const { headers } = answer;
    if (headers.get('penstock-error') !== 'OVERLOADED' || performance.now() > deadline) return answer;
    await setTimeout(Number(headers.get('retry-after')) * 1_000);
  }
}

function firstAnswer(text: string): { readonly answer: RawAnswer; readonly length: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const status = Number(statusLine.split(' ')[1]);
  const length = headEnd + 4 + Number(headers.get('content-length') ?? 0);
  if (status < 200) {
    const final = firstAnswer(text.slice(length)); // skips interim responses
    return final && { ...final, length: length + final.length };
  }
  if (text.length < length) return undefined;
  return { answer: { status, headers, body: text.slice(headEnd + 4, length) }, length };
}
