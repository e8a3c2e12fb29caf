/** A PostgreSQL whose clock shows simulated time, behind a proxy that cuts and freezes its connections: for random histories. */

import type { Database } from '../../src/store/database.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { newMigratedPostgres } from './database.ts';
import type { HistoryStore } from './gateway-history.ts';
import type { SimulatedProcesses } from './simulated-processes.ts';
import { startTcpProxy } from './tcp-proxy.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

const simulatedClock = `
  CREATE SEQUENCE clock MINVALUE 0;
  CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT last_value FROM clock'`;

const tables = [
  ...[
    'ledger',
    'payment',
    'payment_status',
    'instance',
    'active_environment',
    'hold',
    'tenant_name',
    'credential',
  ],
  ...['environment_name', 'environment_address', 'audit'],
].join(', ');

/** For several histories, one after the other: each has an empty database. */
export async function startHistoryPostgres(t: TestScope) {
  const url = new URL(await newMigratedPostgres());
  const own = connectPostgres(url.href, { connections: 2 });
  t.after(() => own.close());
  await own.execute(simulatedClock);
  const proxy = await startTcpProxy(t, Number(url.port));
  url.port = String(proxy.port);

  return {
    async newStore(processes: SimulatedProcesses): Promise<HistoryStore & { close(): Promise<void> }> {
      let offsetMs = 0;
      let shownMs = 0;
      const connected: Database[] = [];

      async function showTime(): Promise<void> {
        const nowMs = processes.now() + offsetMs;
        if (nowMs === shownMs) return;
        shownMs = nowMs;
        await own.query("SELECT setval('clock', $1)", [nowMs]);
      }

      await own.execute(`TRUNCATE ${tables}`);
      await showTime();
      return {
        dialect: 'postgres',
        connect() {
          const database = connectPostgres(url.href);
          connected.push(database);
          return database;
        },
        read: (sql) => own.query(sql),
        prepare: showTime,
        jump(ms) {
          offsetMs += ms;
        },
        networkFaults: [
          () => {
            proxy.refuse();
            proxy.accept();
          },
          () => proxy.refuse(),
          () => {
            proxy.freeze();
            processes.isStuck = true;
          },
        ],
        heal() {
          proxy.accept();
          proxy.resume();
          processes.isStuck = false;
        },
        settle: () =>
          until(10_000, 'no statement is running', async () => {
            const [row] = await own.query(
              `SELECT count(*) AS running FROM pg_stat_activity
               WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
            );
            return row?.running === 0;
          }),
        async close() {
          proxy.refuse();
          proxy.accept();
          await Promise.all(connected.map((database) => database.close()));
        },
      };
    },
  };
}
