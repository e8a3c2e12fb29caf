/** A client that sees bytes and how a connection ends, for what no HTTP client would show. */
import { connect } from 'node:net';
import type { SimulatedBank } from '../../../src/simulated-bank/bank.ts';
import { initiation, jsonOrder, requestId } from './kit.ts';

export interface Talk {
  readonly received: string;
  /** How the bank left: FIN, RST, or not at all. */
  readonly end: 'closed' | 'reset' | 'open';
}

/** Sends bytes and listens until the bank leaves, or until what came matches `enough`. */
export function talk(bank: SimulatedBank, bytes: string, enough?: RegExp): Promise<Talk> {
  const { promise, resolve, reject } = Promise.withResolvers<Talk>();
  let received = '';
  const socket = connect(Number(new URL(bank.baseUrl).port), '127.0.0.1', () => socket.write(bytes));
  const leave = (end: Talk['end']) => {
    resolve({ received, end });
    socket.destroy();
  };
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    if (enough?.test(received)) leave('open');
  });
  socket.on('end', () => leave('closed'));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') leave('reset');
    else reject(error);
  });
  return promise;
}

const fields = Object.entries(initiation).map(([name, value]) => `${name}: ${value}\r\n`);

/** The bytes of a complete initiation. */
export const initiationBytes = [
  'POST /berlingroup/v1/payments/sepa-credit-transfers HTTP/1.1\r\nHost: bank\r\n',
  ...fields,
  `Content-Length: ${jsonOrder.length}\r\n\r\n${jsonOrder}`,
].join('');

/** The bytes of a complete status read. */
export const statusBytes = (paymentId: string) =>
  `GET /berlingroup/v1/payments/sepa-credit-transfers/${paymentId}/status HTTP/1.1\r\nHost: bank\r\nX-Request-ID: ${requestId}\r\n\r\n`;

/** The body behind the first head. */
export const bodyIn = (received: string) => received.slice(received.indexOf('\r\n\r\n') + 4);
