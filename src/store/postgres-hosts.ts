/** The hosts in `state.postgres`. They are tried in their order; the one that accepts writes is used until it fails. */

import { postgresUrls } from '../config/postgres-urls.ts';

export type PostgresHosts = ReturnType<typeof createPostgresHosts>;

/** @param address as `state.postgres` */
export function createPostgresHosts(address: string) {
  const urls = postgresUrls(address);
  if (!urls) throw new TypeError('not an address of PostgreSQL');
  /** The one to try next. */
  let next = 0;
  /** The one that has accepted the newest connection. */
  let accepted: number | undefined;
  return {
    count: urls.length,
    next: () => next,
    nameOf: (host: number): string => urls[host]?.host ?? '',
    /** For a new connection. Its certificates are read for each one: they may have been renewed. */
    optionsFor: (host: number) => ({ connectionString: driverUrl(urls[host]) }),
    /** It cannot be reached, or does not accept writes. */
    failed(host: number): void {
      if (host === next) next = (host + 1) % urls.length;
    },
    accepts(host: number): void {
      next = host;
      accepted = host;
    },
    /** After a failover, connections to another host lead to a server that nobody else uses. */
    isUsed: (host: number): boolean => accepted === undefined || accepted === host,
  };
}

/** pg reads the parameters as libpq does if the address says so, except for the certificate authorities of the system. */
function driverUrl(url: URL | undefined): string {
  if (!url) throw new TypeError('no such host');
  const own = new URL(url);
  own.searchParams.set('uselibpqcompat', 'true');
  if (own.searchParams.get('sslrootcert') === 'system') own.searchParams.delete('sslrootcert');
  return own.href;
}
