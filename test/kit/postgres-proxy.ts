/** A PostgreSQL of a test's own, with the gateway's tables, behind a proxy that can cut and freeze its connections. */

import { migrateNew } from './database.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import type { TestScope } from './test-scope.ts';

export interface ProxiedPostgres {
  readonly server: PostgresServer;
  readonly proxy: TcpProxy;
  /** `state.postgres`, through the proxy. */
  readonly url: string;
}

export async function startProxiedPostgres(life: TestScope): Promise<ProxiedPostgres> {
  const server = await startPostgres(life);
  await migrateNew(server.url);
  const url = new URL(server.url);
  const proxy = await startTcpProxy(life, Number(url.port));
  url.port = String(proxy.port);
  return { server, proxy, url: url.href };
}
