/** The writes of which it is unknown whether the bank executed them, for operators and for reads that show their effect. */

import { textOf } from '../store/database.ts';
import type { LedgerRow, LedgerTable } from '../store/ledger.ts';
import type { Log } from '../telemetry/log.ts';

export interface InDoubtWrite {
  /** Operators resolve it by this id. */
  readonly id: string;
  readonly entry: InDoubtEntry;
}

export interface InDoubtEntry {
  readonly requestId: string;
  readonly operation: string;
  /** `undefined` for an initiation, unless the answer of the bank names it. */
  readonly paymentId: string | undefined;
  /** The identities of the tenant and the environment, not their names. */
  readonly tenant: string;
  readonly environment: string;
  /** The gateway's own path. */
  readonly path: string;
  /** When the request was claimed: milliseconds since 1970. */
  readonly since: number;
  /** Until when a response is awaited: milliseconds since 1970. */
  readonly listenedUntil: number;
  readonly why: string;
  /** Of the meaning of the bank's answer; `undefined` if it has not answered. */
  readonly outcome: string | undefined;
  /** Set if another attempt with this `X-Request-ID` reached the bank, too. */
  readonly otherAttempt: string | undefined;
  readonly isFirstFactor: boolean;
}

/** How many writes of one operation and environment are in doubt. */
export interface InDoubtCount {
  /** The identity. */
  readonly environment: string;
  readonly operation: string;
  readonly isFirstFactor: boolean;
  readonly count: number;
  /** Of these, those of which two attempts have reached the bank. */
  readonly twice: number;
  /** When the oldest one was claimed: milliseconds since 1970. */
  readonly sinceMs: number;
}

/** A write in doubt whose effect a read can show. */
export interface ReadableDoubt {
  /** As `InDoubtWrite.id`. */
  readonly id: string;
  readonly operation: string;
  /** The gateway's own path. */
  readonly path: string;
  readonly paymentId: string;
  /** The identity of the environment. */
  readonly environment: string;
}

export type InDoubtWrites = ReturnType<typeof createInDoubtWrites>;

/** So many are listed, and so many can be resolved by reads. */
const maxListed = 100_000;
const maxReadable = 10_000;

export function createInDoubtWrites(
  table: Pick<LedgerTable, 'inDoubt' | 'inDoubtWith' | 'readableInDoubt' | 'countsInDoubt'>,
) {
  let counts: readonly InDoubtCount[] | undefined;
  const countAll = () => counts?.reduce((sum, { count }) => sum + count, 0);
  let readable: ReadonlyMap<string, readonly ReadableDoubt[]> = new Map();

  return {
    /** The oldest first. @throws DatabaseError */
    all: async (): Promise<readonly InDoubtWrite[]> => (await table.inDoubt(maxListed)).map(inDoubtWriteOf),
    /** The writes of all instances at the last refresh; `undefined` before the first one. */
    count: countAll,
    /** The same, by environment and operation. */
    counts: () => counts ?? [],
    /** The cancellations and updates of a payment that the last refresh found. */
    readableDoubtsOf: (paymentId: string): readonly ReadableDoubt[] => readable.get(paymentId) ?? [],
    /** To be called every second. @throws DatabaseError */
    async refresh(): Promise<void> {
      counts = (await table.countsInDoubt()).map(inDoubtCountOf);
      const rows = countAll() === 0 ? [] : await table.readableInDoubt(maxReadable);
      readable = Map.groupBy(rows.map(readableDoubtOf), ({ paymentId }) => paymentId);
    },
  };
}

export function inDoubtWriteOf(row: LedgerRow): InDoubtWrite {
  return {
    id: String(row.attempt),
    entry: {
      requestId: String(row.request_id),
      operation: String(row.operation),
      paymentId: textOf(row.payment) || textOf(row.payment_id),
      tenant: String(row.tenant),
      environment: String(row.environment),
      path: String(row.path),
      since: Number(row.claimed_at),
      listenedUntil: Number(row.listened_until),
      why: String(row.why),
      outcome: textOf(row.outcome),
      otherAttempt: textOf(row.other_attempt),
      isFirstFactor: Boolean(row.is_first_factor),
    },
  };
}

const inDoubtCountOf = (row: LedgerRow): InDoubtCount => ({
  environment: String(row.environment),
  operation: String(row.operation),
  isFirstFactor: Boolean(row.is_first_factor),
  count: Number(row.writes),
  twice: Number(row.twice),
  sinceMs: Number(row.since),
});

const readableDoubtOf = (row: LedgerRow): ReadableDoubt => ({
  id: String(row.attempt),
  operation: String(row.operation),
  path: String(row.path),
  paymentId: String(row.payment),
  environment: String(row.environment),
});

/** Logged at error level if an operator has to ask the bank. */
export function logInDoubt(
  log: Log,
  {
    requestId,
    operation,
    tenant,
    environment,
    isFirstFactor,
  }: Pick<InDoubtEntry, 'requestId' | 'operation' | 'tenant' | 'environment' | 'isFirstFactor'>,
  why: string,
): void {
  const fields = { requestId, operation, tenant, environment, why };
  if (isFirstFactor) log('warn', 'a step of an authorisation is in doubt', fields);
  else log('error', 'a payment is in doubt', fields);
}
