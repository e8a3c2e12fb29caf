/** A PostgreSQL for tests: a running one, or a server of this test process; each test has a database of its own. */

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { Client } from 'pg';
import { type LaunchedChild, launchChild } from './child-launcher.ts';
import {
  howToGetPostgres,
  postgresIsRequired,
  postgresPrograms,
  runningPostgres,
  suiteTemplate,
} from './find-postgres.ts';
import { freePort } from './ports.ts';
import { scopeOfAllTests, type TestScope } from './test-scope.ts';
import { until } from './within.ts';

export const skipWithoutPostgres: string | false =
  runningPostgres() || postgresPrograms() || postgresIsRequired()
    ? false
    : `there is no PostgreSQL; get one: ${howToGetPostgres}`;

export interface PostgresServer {
  /** The address of its database for administration. */
  readonly url: string;
  /** The same without a network: by its socket in the file system. */
  readonly socketUrl: string;
  /** The folder with its data. The folder around it belongs to the user of the server. */
  readonly data: string;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** The words before a program that refuses to run as root, as PostgreSQL and PgBouncer do. */
export const asUserOfPostgres = (): readonly string[] =>
  userInfo().uid === 0 ? ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'] : [];

/** Starts a server. @param settings such as `synchronous_commit=on` */
export async function startPostgres(
  life: TestScope,
  ...settings: readonly string[]
): Promise<PostgresServer> {
  const folder = newServerFolder();
  const data = join(folder, 'data');
  runProgram(folder, 'initdb', [
    ...['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--no-sync'],
  ]);
  return startServer(life, folder, settings);
}

/**
 * Starts a server that copies another one, and then follows it.
 *
 * @param name as in `synchronous_standby_names` of the other one
 */
export async function startStandby(
  life: TestScope,
  primary: Pick<PostgresServer, 'url'>,
  name: string,
  ...settings: readonly string[]
): Promise<PostgresServer> {
  const folder = newServerFolder();
  const { port } = new URL(primary.url);
  runProgram(folder, 'pg_basebackup', [
    ...[
      '-D',
      join(folder, 'data'),
      '--checkpoint=fast',
      '--no-sync',
      '--write-recovery-conf',
      '--no-password',
    ],
    ...['-d', `host=127.0.0.1 port=${port} user=postgres application_name=${name}`],
  ]);
  return startServer(life, folder, settings);
}

/** Makes a standby the primary server. Returns when it accepts writes. */
export const promote = (standby: Pick<PostgresServer, 'url'>): Promise<void> =>
  administrate(standby.url, 'SELECT pg_promote()');

function newServerFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-postgres-'));
  chmodSync(folder, 0o755);
  if (userInfo().uid === 0) {
    const [uid = 0, gid = 0] = ['-u', '-g'].map((option) => Number(execFileSync('id', [option, 'postgres'])));
    chownSync(folder, uid, gid);
  }
  return folder;
}

/** The command line of a program of PostgreSQL. */
function commandOf(program: string, words: readonly string[]): readonly [string, ...string[]] {
  const programs = postgresPrograms();
  if (!programs) throw new Error(`no PostgreSQL to start: ${howToGetPostgres}`);
  const [first = '', ...rest] = [...asUserOfPostgres(), join(programs, program), ...words];
  return [first, ...rest];
}

function runProgram(folder: string, program: string, words: readonly string[]): void {
  const [first, ...rest] = commandOf(program, words);
  execFileSync(first, rest, { stdio: 'ignore', cwd: folder });
}

async function startServer(
  life: TestScope,
  folder: string,
  settings: readonly string[],
): Promise<PostgresServer> {
  let child: LaunchedChild | undefined;
  const kill = async () => {
    child?.kill('SIGQUIT');
    await until(10_000, 'PostgreSQL ends', () => child?.hasEnded() ?? true);
  };
  life.after(async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const start = async () => {
    const options = [
      'listen_addresses=127.0.0.1',
      `unix_socket_directories=${folder}`,
      'max_connections=500',
      ...settings,
    ];
    const [program, ...args] = commandOf('postgres', [
      ...['-D', join(folder, 'data'), '-p', String(port)],
      ...options.flatMap((option) => ['-c', option]),
    ]);
    child = await launchChild(program, args, folder);
    await until(20_000, `PostgreSQL answers on port ${port}`, () => canConnect(url));
  };
  await start();
  return {
    url,
    socketUrl: `${url}?host=${folder}`,
    data: join(folder, 'data'),
    kill,
    async restart() {
      await kill();
      await start();
    },
  };
}

/** The server of this process, and what tests have created in a running one: until all of them have ended. */
const allTests: TestScope = isMainThread ? scopeOfAllTests() : { after: () => {} };
let shared: Promise<string> | undefined;

/** The host and port of a pooler in front of the running server: `scripts/suite-pooler.ts` has started it. */
const pooler = process.env.POSTGRES_POOLER;
/** Whether tests use PostgreSQL through a pooler. */
export const isPooled = pooler !== undefined;

/**
 * A new database: empty, or a copy of another one of the server.
 *
 * @returns its address
 */
export async function newPostgresDatabase(template = 'template1'): Promise<string> {
  shared ??= Promise.resolve(
    runningPostgres() ?? startPostgres(allTests, 'fsync=off').then(({ url }) => url),
  );
  const server = await shared;
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administrate(server, `CREATE DATABASE ${name} TEMPLATE ${template}`, copySettings(template, name));
  if (runningPostgres() && !suiteTemplate())
    allTests.after(() => administrate(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  url.host = pooler ?? url.host;
  return url.href;
}

/** A copy of a database has its tables, but not the settings that belong to it. */
const copySettings = (from: string, to: string) =>
  `INSERT INTO pg_db_role_setting (setdatabase, setrole, setconfig)
   SELECT (SELECT oid FROM pg_database WHERE datname = '${to}'), setrole, setconfig
   FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = '${from}'`;

/** A connection of somebody else, such as a backup or a report; closed when the test ends. */
export async function connectOther(life: TestScope, url: string): Promise<Client> {
  const client = new Client(url);
  client.on('error', () => {}); // the database is dropped at the end
  await client.connect();
  life.after(() => client.end());
  return client;
}

/** Statements outside a transaction. */
export async function administrate(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    for (const sql of statements) await client.query(sql);
  } finally {
    await client.end();
  }
}

export async function canConnect(url: string): Promise<boolean> {
  const client = new Client(url);
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
