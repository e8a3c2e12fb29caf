/** A number of idle instances on one PostgreSQL, and what they cost. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { connectOther, type PostgresServer, startPostgres } from '../../test/kit/postgres.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { cpuMsOf } from '../measure/proc.ts';

interface FleetRun {
  readonly instances: number;
  readonly seconds: number;
}

/** For the JIT compiler, and until all instances know each other. Seconds. */
const warmUpSeconds = 15;

/** @returns the columns of the table, as text */
export async function measureFleet(
  life: TestScope,
  { instances, seconds }: FleetRun,
): Promise<readonly string[]> {
  const postgres = await startPostgres(life);
  const sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: 'http://127.0.0.1:9' },
      production: { baseUrl: 'http://127.0.0.1:10' },
    },
    shaping: { expectedInstances: instances },
    state: { postgres: postgres.url },
  };
  const gateways: GatewayProcess[] = [];
  for (let started = 0; started < instances; started++)
    gateways.push(await startGatewayProcess(life, sections));
  const pids = gateways.flatMap(({ command }) => command.pid ?? []);
  const other = await connectOther(life, postgres.url);
  await setTimeout(warmUpSeconds * 1_000);

  const read = async () => {
    // Each statement is a transaction.
    const { rows } = await other.query(
      "SELECT (SELECT sum(xact_commit) FROM pg_stat_database) AS statements, pg_current_wal_lsn() - '0/0' AS wal",
    );
    return {
      statements: Number(rows[0]?.statements),
      walBytes: Number(rows[0]?.wal),
      cpuMs: cpuMsOf(pids),
      postgresCpuMs: cpuMsOf(processesOf(postgres)),
      atMs: performance.now(),
    };
  };
  const before = await read();
  await setTimeout(seconds * 1_000);
  const after = await read();

  const perSecond = (name: keyof typeof before) =>
    ((after[name] - before[name]) / (after.atMs - before.atMs)) * 1_000;
  return [
    (perSecond('statements') / instances).toFixed(1),
    (perSecond('postgresCpuMs') / 10).toFixed(2),
    (perSecond('cpuMs') / 10 / instances).toFixed(2),
    (perSecond('walBytes') / 1_000).toFixed(1),
  ];
}

/** The server and its children. */
function processesOf({ data }: PostgresServer): readonly number[] {
  const server = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0] ?? '';
  const isChild = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1] === server;
    } catch {
      return false; // it has ended
    }
  };
  return [server, ...readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isChild(name))].map(Number);
}
