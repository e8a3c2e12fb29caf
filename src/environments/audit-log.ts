/**
 * The audit log: who changed what, when and why, as a hash chain that reveals later tampering.
 *
 * Each record contains the hash of its predecessor, so a changed, removed or inserted record breaks the chain. The chain
 * cannot reveal that its newest records were removed, or that somebody with write access to the database recomputed all
 * hashes. Every record is therefore also written to the log stream.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError, GatewayError } from '../request/errors.ts';
import type { AuditTable, StoredAuditRecord } from '../store/audit.ts';
import { DatabaseError } from '../store/database.ts';
import type { Log } from '../telemetry/log.ts';

const detailsShape = z.record(z.string(), z.unknown());

export interface AuditRecord extends Omit<StoredAuditRecord, 'details'> {
  readonly details: z.output<typeof detailsShape>;
}

export interface AuditLog extends AuditRecorder {
  /** @throws GatewayError STATE_UNAVAILABLE; the event is in the log stream nevertheless, and may be in the database */
  append(event: AuditEvent): Promise<AuditRecord>;
  /** The newest records, newest first, without those that somebody has made unreadable. */
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** The newest records whose details name this payment, newest first. */
  ofPayment(paymentId: string, count: number): Promise<readonly AuditRecord[]>;
  /** Checks the whole chain. @returns the number of records, and the first problem if there is one */
  verify(): Promise<{ readonly records: number; readonly broken?: string }>;
}

/** The record that the next one follows. */
type Predecessor = Pick<StoredAuditRecord, 'number' | 'hash'>;

/** The predecessor of the first record. */
const genesis: Predecessor = { number: 0, hash: '0'.repeat(64) };

/**
 * How many records follow one another before an instance looks for the newest again. While it looks, another instance can append: without
 * these pauses, 8 of 77 appends lost their number 200 times in a row while another instance appended 4,000 records to PostgreSQL.
 */
const maxInARow = 10;

/** How often an append that loses its number to another instance tries the next one. */
const maxAttempts = 500;

/** How many records the verification reads at a time. */
const pageSize = 500;

interface QueuedEvent {
  readonly event: AuditEvent;
  readonly onAppended: (record: AuditRecord) => void;
  readonly onFailed: (thrown: unknown) => void;
}

export function createAuditLog(table: AuditTable, log: Log): AuditLog {
  const queue: QueuedEvent[] = [];
  let isAppending = false;

  function append(event: AuditEvent): Promise<AuditRecord> {
    return new Promise((resolve, reject) => {
      queue.push({ event, onAppended: resolve, onFailed: reject });
      if (!isAppending) void appendQueued();
    });
  }

  /** One after the other: a resolution of thousands of requests needs little more than one statement for each record. */
  async function appendQueued(): Promise<void> {
    isAppending = true;
    let last: Predecessor | undefined;
    let inARow = 0;
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { event, onAppended } = next;
      try {
        const stored = await appendAfter(last ?? (await newestOne()), event);
        inARow = (inARow + 1) % maxInARow;
        last = inARow > 0 ? stored : undefined;
        onAppended({ ...stored, details: event.details });
        logEvent(event, stored);
      } catch (thrown) {
        last = undefined;
        // The others would wait for the same answer.
        for (const { event, onFailed } of [next, ...queue.splice(0)]) {
          onFailed(thrown);
          logEvent(event, undefined);
        }
      }
    }
    isAppending = false;
  }

  /** No log contains ids of payments. The hash still shows whether the record in the database is the logged one. */
  function logEvent(event: AuditEvent, record: Predecessor | undefined): void {
    const { paymentId: _, ...details } = event.details;
    log('warn', 'audit', { ...event, details, number: record?.number, hash: record?.hash });
  }

  async function newestOne(): Promise<Predecessor> {
    const [newest = genesis] = await table.newest(1);
    return newest;
  }

  /** If another instance takes the number first, continues behind the newest record. */
  async function appendAfter(last: Predecessor, event: AuditEvent): Promise<StoredAuditRecord> {
    let predecessor = last;
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const record = recordAfter(predecessor, event);
      if (await insert(record)) return record;
      predecessor = await newestOne();
    }
    throw new GatewayError('STATE_UNAVAILABLE', 'Other instances write too many audit records. Try again.');
  }

  /**
   * Inserts a record once more if it is unknown whether the database has it: with the same number, so that an event is never twice in
   * the chain.
   *
   * @returns false if there is another record with this number
   */
  async function insert(record: StoredAuditRecord): Promise<boolean> {
    try {
      return await table.insert(record);
    } catch (thrown) {
      if (!(thrown instanceof DatabaseError) || thrown.effect !== 'unknown') throw thrown;
      return (await table.insert(record)) || (await table.contains(record));
    }
  }

  const readable = (records: readonly StoredAuditRecord[]): readonly AuditRecord[] =>
    records.flatMap((stored) => {
      const details = readDetails(stored.details);
      return details ? [{ ...stored, details }] : [];
    });

  async function verify(): Promise<{ readonly records: number; readonly broken?: string }> {
    const last = await newestOne();
    let previous = genesis;
    while (previous.number < last.number) {
      const page = await table.following(previous.number, pageSize);
      if (page.length === 0) return { records: last.number, broken: missing(previous.number + 1) };
      for (const record of page) {
        const broken = findProblem(record, previous);
        if (broken) return { records: last.number, broken };
        previous = record;
      }
    }
    return { records: previous.number };
  }

  async function record(event: AuditEvent): Promise<void> {
    await append(event).catch((thrown: unknown) => {
      log('error', 'the database has not confirmed the audit record; it may be only in this log', {
        why: thrown instanceof DatabaseError ? thrown.reason : asGatewayError(thrown).message,
      });
    });
  }

  return {
    append,
    record,
    newest: async (count) => readable(await table.newest(count)),
    ofPayment: async (paymentId, count) => readable(await table.ofPayment(paymentId, count)),
    verify,
  };
}

function recordAfter(
  { number, hash }: Predecessor,
  { who, action, outcome, details }: AuditEvent,
): StoredAuditRecord {
  const fields = {
    number: number + 1,
    at: new Date().toISOString(),
    // A name that was cut within a surrogate pair is not stored as it was hashed.
    who: who.toWellFormed(),
    action,
    outcome,
    details: JSON.stringify(details),
    previous: hash,
  };
  return { ...fields, hash: hashOf(fields) };
}

function readDetails(text: string): AuditRecord['details'] | undefined {
  try {
    return detailsShape.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // verify() reports it
  }
}

function findProblem(record: StoredAuditRecord, previous: Predecessor): string | undefined {
  const { number } = record;
  if (number !== previous.number + 1) return missing(previous.number + 1);
  if (record.hash !== hashOf(record)) return `record ${number} was altered`;
  return record.previous === previous.hash
    ? undefined
    : `record ${number} does not follow record ${previous.number}`;
}

const missing = (number: number) => `record ${number} is missing`;

/** SHA-256 of the fields as a JSON array in a fixed order. The stored text of the details is a part of it, as it is. */
function hashOf({ number, at, who, action, outcome, details, previous }: Omit<StoredAuditRecord, 'hash'>) {
  const [before, after] = [JSON.stringify([number, at, who, action, outcome]), JSON.stringify([previous])];
  const text = `${before.slice(0, -1)},${details},${after.slice(1)}`;
  return createHash('sha256').update(text).digest('hex');
}
