/** Opens TCP and TLS connections to one origin, and resumes TLS sessions. */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Credentials } from '../certificates/tls-credentials.ts';
import { hostWithoutBrackets } from '../config/values.ts';
import { type EgressProxy, openTunnel } from './egress-proxy.ts';

/** @returns a socket that is connecting */
export type Connector = () => Socket;

/** Milliseconds of silence before the first TCP keep-alive probe. */
const keepAliveInitialDelay = 1_000;

/** @param origin such as `https://api.bank.example`; TLS 1.2 or later. @param proxy opens a tunnel to it */
export function createConnector(origin: string, credentials: Credentials, proxy?: EgressProxy): Connector {
  const { protocol, hostname, port } = new URL(origin);
  const host = hostWithoutBrackets(hostname);
  const options = { host, noDelay: true, keepAlive: true, keepAliveInitialDelay };
  const target = `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`;
  // The pool uses the members of a socket that a tunnel has.
  const tunnel = proxy && (() => openTunnel(proxy, target) as Socket);
  if (protocol === 'http:') return tunnel ?? (() => connectTcp({ ...options, port: Number(port || 80) }));

  const tlsOptions = {
    ...options,
    port: Number(port || 443),
    servername: isIP(host) ? '' : host,
    ...credentials,
    minVersion: 'TLSv1.2',
  } as const;
  let session: Buffer | undefined;
  return () => {
    const through = tunnel && { socket: tunnel() };
    const socket = connectTls({ ...tlsOptions, ...through, ...(session && { session }) });
    socket.on('session', (latest) => {
      session = latest;
    });
    const discardSession = () => {
      session = undefined; // the bank may not accept it any more
    };
    socket.on('error', discardSession).once('close', discardSession); // an aborted handshake closes without an error
    socket.once('secureConnect', () => socket.off('close', discardSession));
    return socket;
  };
}
