/** Opens a server on the address that the configuration names; if that fails, the error names the setting to change. */

import type { Server } from 'node:http';
import { type ListenOptions, openServer } from './listener.ts';

/**
 * @param section of the configuration, with the settings `host` and `port`
 * @returns the port
 * @throws Error with the code of the system error
 */
export async function openConfiguredServer(
  server: Server,
  section: 'listen' | 'admin' | 'notifications.listen',
  options: ListenOptions,
): Promise<number> {
  try {
    return await openServer(server, options);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
    const text = describeFailure(code, section, options);
    throw text === undefined ? cause : Object.assign(new Error(`${code}: ${text}`, { cause }), { code });
  }
}

function describeFailure(code: string, section: string, { host, port }: ListenOptions): string | undefined {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return `another process uses ${address} (${section}.port); stop it, or set ${section}.port to a free port`;
    case 'EACCES':
      return `this user may not listen on ${address} (${section}.port); set a port above 1023, or grant CAP_NET_BIND_SERVICE`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} (${section}.host) is not an address of this host; use one of its addresses`;
    default:
      return undefined;
  }
}
