/** Proxies that authenticate operators and send their names and groups in headers. */

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createNetworkMatcher, isNetwork } from '../config/network-list.ts';
import type { AdminSettings } from '../config/schema.ts';
import { headerFieldsFrom, headerValues } from '../pis/headers.ts';
import type { Person } from './operators.ts';

export interface TrustedProxies {
  /** The person that a trusted proxy names; `undefined` from any other source, whatever it sends. */
  personOf(request: IncomingMessage): Person | undefined;
  /** The address that the request comes from: that of the connection, or the one that a trusted proxy reports. */
  clientAddress(request: IncomingMessage): string;
}

export function createTrustedProxies({
  trustedProxies,
  proxySignIn: { userHeader, groupsHeader },
}: Pick<AdminSettings, 'trustedProxies' | 'proxySignIn'>): TrustedProxies {
  const isTrustedAddress = createNetworkMatcher(trustedProxies.filter(isNetwork));
  const fingerprints = new Set(trustedProxies.filter((proxy) => !isNetwork(proxy)));
  const isTrusted = (socket: Socket) =>
    isTrustedAddress(socket.remoteAddress ?? '') ||
    (fingerprints.size > 0 && fingerprints.has(fingerprintOf(socket) ?? ''));

  return {
    personOf({ socket, rawHeaders }) {
      if (!isTrusted(socket)) return undefined;
      const [name, ...others] = valuesOf(rawHeaders, userHeader);
      // A proxy that adds its header to that of the client would let the client choose the name.
      if (name === undefined || name.trim() === '' || others.length > 0) return undefined;
      const groups = valuesOf(rawHeaders, groupsHeader);
      if (groups.length > 1) return undefined;
      return { name, groups: (groups[0] ?? '').split(',').map((group) => group.trim()) };
    },
    clientAddress({ socket, rawHeaders }) {
      const peer = socket.remoteAddress ?? '';
      if (!isTrusted(socket)) return peer;
      const hops = valuesOf(rawHeaders, 'X-Forwarded-For').flatMap((value) => value.split(','));
      return hops.map((hop) => hop.trim()).findLast((hop) => isIP(hop) > 0 && !isTrustedAddress(hop)) ?? peer;
    },
  };
}

/** Of every field with this name. Node reads bytes as latin1; proxies send UTF-8. */
const valuesOf = (rawHeaders: readonly string[], name: string): readonly string[] =>
  headerValues(headerFieldsFrom(rawHeaders), name.toLowerCase()).map((value) =>
    Buffer.from(value, 'latin1').toString('utf8'),
  );

/** Of the peer's certificate, if the listener has verified it and it has not expired since. */
function fingerprintOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (!certificate || certificate.validToDate.getTime() < Date.now()) return undefined;
  return createHash('sha256').update(certificate.raw).digest('hex');
}
