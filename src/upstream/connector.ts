/** Makes connections to one place, with TLS sessions that go on from one to the next. */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { hostWithoutBrackets } from '../config/values.ts';
import type { Credentials } from './credentials.ts';

/** Begins to make a connection. */
export type Connector = () => Socket;

/** Whether a bank that does not answer is still there is asked after this time. Milliseconds. */
const keepAliveInitialDelay = 1_000;

/** @param origin such as `https://api.bank.example`; TLS 1.2 at least */
export function createConnector(origin: string, credentials: Credentials): Connector {
  const { protocol, hostname, port } = new URL(origin);
  const host = hostWithoutBrackets(hostname);
  const to = { host, noDelay: true, keepAlive: true, keepAliveInitialDelay };
  if (protocol === 'http:') return () => connectTcp({ ...to, port: Number(port || 80) });

  const shown = { servername: isIP(host) ? '' : host, ...credentials, minVersion: 'TLSv1.2' } as const;
  let session: Buffer | undefined;
  return () => {
    const secure = connectTls({ ...to, port: Number(port || 443), ...shown, ...(session && { session }) });
    secure.on('session', (latest) => {
      session = latest;
    });
    const forget = () => {
      session = undefined; // perhaps the bank does not take it any more
    };
    secure.on('error', forget).once('close', forget); // a handshake that is given up ends without an error
    secure.once('secureConnect', () => secure.off('close', forget));
    return secure;
  };
}
