/** PgBouncer in transaction mode: each statement of the gateway may get another connection to PostgreSQL. */

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { type LaunchedChild, launchChild } from './child-launcher.ts';
import { onPath } from './on-path.ts';
import { freePort } from './ports.ts';
import { asUserOfPostgres, canConnect } from './postgres.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

/** `PGBOUNCER_BIN`, else the first on the PATH; Debian installs it where only root looks. */
const program = process.env.PGBOUNCER_BIN ?? onPath('pgbouncer') ?? onPath('pgbouncer', '/usr/sbin');

const howToGetPgbouncer = 'apt-get install pgbouncer, or brew install pgbouncer';

export const skipWithoutPgbouncer: string | false = program
  ? false
  : `there is no PgBouncer; get one: ${howToGetPgbouncer}`;

export interface Pgbouncer {
  readonly port: number;
  /** The address of a database of the server, through PgBouncer. */
  through(url: string): string;
  /** Ends it at once, and with it all connections. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** A command of its console, such as `SHOW POOLS` or `PAUSE`. */
  command(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/**
 * Starts it in front of a server that trusts all roles, for all of its databases.
 *
 * @param lines further lines of its configuration, which replace equal ones, such as `default_pool_size = 1`
 */
export async function startPgbouncer(
  life: TestScope,
  serverUrl: string,
  ...lines: readonly string[]
): Promise<Pgbouncer> {
  if (!program) throw new Error(`no PgBouncer to start: ${howToGetPgbouncer}`);
  const { hostname, port: serverPort } = new URL(serverUrl);
  const folder = mkdtempSync(join(tmpdir(), 'penstock-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const [file, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')];
  writeFileSync(users, '"postgres" ""\n');
  const settings = [
    '[databases]',
    `* = host=${hostname} port=${serverPort}`,
    '[pgbouncer]',
    'pool_mode = transaction',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${users}`,
    'auth_user = postgres', // looks up all other roles
    'admin_users = postgres',
    'max_client_conn = 1000',
    'server_idle_timeout = 5', // tests have many databases, each with its own pool
    ...lines,
  ];
  writeFileSync(file, settings.map((line) => `${line}\n`).join(''));

  let child: LaunchedChild | undefined;
  const through = (url: string) => {
    const own = new URL(url);
    own.host = `127.0.0.1:${port}`;
    return own.href;
  };
  const kill = async () => {
    child?.kill('SIGKILL');
    await until(10_000, 'PgBouncer ends', () => child?.hasEnded() ?? true);
  };
  const start = async () => {
    const [first = '', ...words] = [...asUserOfPostgres(), program, file];
    child = await launchChild(first, words, folder);
    await until(10_000, `PgBouncer answers on port ${port}`, () => canConnect(through(serverUrl)));
  };
  life.after(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await start();
  return {
    port,
    through,
    kill,
    async restart() {
      await kill();
      await start();
    },
    async command(sql) {
      const client = new Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/pgbouncer` });
      client.on('error', () => {});
      await client.connect();
      const { rows } = await client.query(sql).finally(() => client.end());
      return rows;
    },
  };
}
