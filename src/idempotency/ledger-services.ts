/** The parts of the ledger that survive a reload of the configuration. */

import type { EncryptionKeys } from '../config/encryption-keys.ts';
import { createDeadlines } from '../request/deadlines.ts';
import { createWaiters } from '../state/change-waiter.ts';
import { createBeforeDeadline } from '../store/before-deadline.ts';
import type { Database } from '../store/database.ts';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import type { InstanceTable } from '../store/instances.ts';
import { createLedgerTable, keyTextOf, type LedgerKey, type LedgerRow } from '../store/ledger.ts';
import type { Log } from '../telemetry/log.ts';
import { createInDoubtWrites, logInDoubt } from './in-doubt.ts';
import { createRecentWrites } from './recent-writes.ts';
import { createIdentifyRequest } from './request-identity.ts';
import type { StorageBudget } from './storage-budget.ts';
import { createResponseColumns } from './stored-response.ts';

export interface LedgerOptions {
  readonly database: Database;
  readonly instances: Pick<InstanceTable, 'recover'>;
  readonly instanceId: string;
  /** The keys of `state.encryptionKeyFile`, if there is one. */
  readonly keys?: EncryptionKeys | undefined;
  readonly storageBudget: StorageBudget;
  /** How long responses are stored, in milliseconds. */
  readonly windowMs: () => number;
  readonly countDuplicate: () => void;
  readonly log: Log;
}

/** How often a repeat looks for the outcome of the first request. Milliseconds. */
const lookEveryMs = 100;

export type LedgerServices = ReturnType<typeof createLedgerServices>;

/** The outcome of an attempt that the database has not stored yet. Rejects until it has. */
export type StoreOutcome = () => Promise<void>;

export function createLedgerServices({
  database,
  instances,
  instanceId,
  keys,
  storageBudget,
  windowMs,
  countDuplicate,
  log,
}: LedgerOptions) {
  const table = createLedgerTable(database);
  const waiting = createWaiters(lookEveryMs);
  const inDoubt = createInDoubtWrites(table);
  const recentWrites = createRecentWrites(table.read, { keepsNone: database.dialect === 'sqlite' }); // SQLite has no standby
  const setDeadline = createDeadlines();
  /** The attempts of this instance, from before their claims until their outcomes are stored. */
  const running = new Set<string>();
  /** By attempt. */
  const unstored = new Map<string, StoreOutcome>();

  /** Those of this instance that wait for the row. Others look again by themselves: a message for each write would cost all of them. */
  function wakeRepeats(key: LedgerKey): void {
    if (!waiting.isEmpty()) waiting.wake(keyTextOf(key));
  }

  async function storeOutcomes(): Promise<void> {
    // One that the database never accepts must not keep back the others.
    await Promise.allSettled(Array.from(unstored.values(), (store) => store()));
  }

  async function recover(): Promise<void> {
    for (const row of await instances.recover((attempt) => running.has(attempt))) {
      logInDoubt(log, doubtIn(row), String(row.why));
      wakeRepeats(keyOf(row));
    }
  }

  return {
    table,
    instanceId,
    identify: createIdentifyRequest(keys),
    responses: createResponseColumns(keys),
    storageBudget,
    inDoubt,
    recentWrites,
    running,
    unstored,
    countDuplicate,
    log,
    setDeadline,
    beforeDeadline: createBeforeDeadline(setDeadline),
    /** Resolves when this instance has changed the row, and at the latest after 100 ms: another one may have changed it. */
    nextChange: (key: LedgerKey) => waiting.nextChange(keyTextOf(key)),
    wakeRepeats,
    /**
     * Stores outcomes that the database has not accepted yet, and recovers what ended instances have left. To be called every second,
     * after the report of this instance. Never rejects: the next call tries again.
     */
    async maintain(): Promise<void> {
      await Promise.allSettled([storeOutcomes(), recover(), inDoubt.refresh()]);
    },
    /** Deletes writes whose window has passed. @throws DatabaseError */
    deleteExpired: () => deleteInBatches((limit, from) => table.deleteExpired(windowMs(), limit, from)),
    /** Before the end of the process. Never rejects. */
    async flush(): Promise<void> {
      await storeOutcomes().catch(() => {});
    },
  };
}

const keyOf = (row: LedgerRow): LedgerKey => ({
  requestId: String(row.request_id),
  tenant: String(row.tenant),
  operation: String(row.operation),
  payment: String(row.payment),
});

const doubtIn = (row: LedgerRow) => ({
  ...keyOf(row),
  environment: String(row.environment),
  isFirstFactor: Boolean(row.is_first_factor),
});
