/** Two PostgreSQL servers with the gateway's tables: a primary server, and a standby that can take its place. */

import { Client } from 'pg';
import { migrateNew } from './database.ts';
import { administrate, type PostgresServer, promote, startPostgres, startStandby } from './postgres.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

export interface ReplicatedPostgres {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** `state.postgres`, with both hosts. */
  readonly url: string;
  /** Commits wait for the standby, or for none. */
  setSynchronous(names: 'standby' | ''): Promise<void>;
  /** The standby receives nothing any more, until the primary server is killed. */
  stopSender(): Promise<void>;
  /** Kills the primary server, and promotes the standby. */
  failOver(): Promise<void>;
}

export async function startReplicatedPostgres(
  life: TestScope,
  names: 'standby' | '',
): Promise<ReplicatedPostgres> {
  const primary = await startPostgres(life);
  await migrateNew(primary.url);
  const standby = await startStandby(life, primary, 'standby');
  const setSynchronous = async (next: string) => {
    // Its own commit would wait.
    await administrate(
      primary.url,
      'SET synchronous_commit = local',
      `ALTER SYSTEM SET synchronous_standby_names = '${next}'`,
      'SELECT pg_reload_conf()',
    );
    await until(10_000, 'the setting is in effect', async () => {
      const [row] = await ask(primary.url, 'SHOW synchronous_standby_names');
      return row?.synchronous_standby_names === next;
    });
  };
  await until(10_000, 'the standby follows', async () => {
    const [row] = await ask(primary.url, `SELECT count(*)::int AS followers FROM pg_stat_replication`);
    return row?.followers === 1;
  });
  if (names !== '') await setSynchronous(names);
  const url = new URL(primary.url);
  return {
    primary,
    standby,
    url: primary.url.replace(url.host, `${url.host},${new URL(standby.url).host}`),
    setSynchronous,
    async stopSender() {
      const [row] = await ask(
        primary.url,
        `SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender' AND application_name = 'standby'`,
      );
      process.kill(Number(row?.pid), 'SIGSTOP');
    },
    async failOver() {
      await primary.kill();
      await promote(standby);
    },
  };
}

/** On a connection of its own. @returns the rows of a single statement */
export async function ask(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rows } = await client.query(sql);
    return rows;
  } finally {
    await client.end();
  }
}
