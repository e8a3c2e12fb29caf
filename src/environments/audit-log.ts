/**
 * The audit log: who changed what, when and why, as a hash chain that reveals later tampering.
 *
 * Each record contains the hash of its predecessor, so a changed, removed or inserted record breaks the chain. The chain
 * cannot reveal that its newest records were removed, or that somebody with write access to the state recomputed all
 * hashes. Every record is therefore also written to the log stream.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import { parseStored } from '../state/parse-stored.ts';
import type { KeyValues } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';

const recordShape = z.object({
  number: z.int().positive(),
  /** ISO 8601, UTC. */
  at: z.string(),
  who: z.string(),
  action: z.string(),
  outcome: z.string(),
  details: z.record(z.string(), z.unknown()),
  previous: z.string(),
  hash: z.string(),
});

export type AuditRecord = Readonly<z.output<typeof recordShape>>;

export interface AuditLog extends AuditRecorder {
  /** @throws GatewayError STATE_UNAVAILABLE; the event is in the log stream nevertheless */
  append(event: AuditEvent): Promise<AuditRecord>;
  /** The newest records, newest first. */
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** Checks the whole chain. @returns the number of records, and the first problem if there is one */
  verify(): Promise<{ readonly records: number; readonly broken?: string }>;
}

const headKey = 'audit:head';
const recordKey = (number: number) => `audit:${number}`;
const genesisHash = '0'.repeat(64);

/** The record that the next one follows; its number is 0 in front of the first one. */
type Predecessor = Pick<AuditRecord, 'number' | 'hash'>;

interface QueuedEvent {
  readonly event: AuditEvent;
  readonly onAppended: (record: AuditRecord) => void;
  readonly onFailed: (thrown: unknown) => void;
}

export function createAuditLog(keyValues: KeyValues, log: Log): AuditLog {
  const queue: QueuedEvent[] = [];
  let isAppending = false;

  function append(event: AuditEvent): Promise<AuditRecord> {
    return new Promise((resolve, reject) => {
      queue.push({ event, onAppended: resolve, onFailed: reject });
      if (!isAppending) void appendQueued();
    });
  }

  /** One after the other: a resolution of thousands of requests needs one write for each record, and no search for the newest. */
  async function appendQueued(): Promise<void> {
    isAppending = true;
    let last: Predecessor | undefined;
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { event, onAppended } = next;
      try {
        const record = await appendAfter(last ?? (await predecessor(await head())), event);
        last = record;
        onAppended(record);
        logEvent(event, record);
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

  const logEvent = (event: AuditEvent, record: AuditRecord | undefined) =>
    log('warn', 'audit', { ...event, number: record?.number, hash: record?.hash });

  /** If another instance takes the number first, continues behind that record. */
  async function appendAfter(last: Predecessor, event: AuditEvent): Promise<AuditRecord> {
    const fields = {
      number: last.number + 1,
      at: new Date().toISOString(),
      ...event,
      previous: last.hash,
    };
    const record = { ...fields, hash: hashOf(fields) };
    if (!(await keyValues.writeIfAbsent(recordKey(record.number), JSON.stringify(record))))
      return appendAfter(await predecessor(record.number), event);
    void keyValues.write(headKey, String(record.number)).catch(() => {}); // only a hint
    return record;
  }

  async function predecessor(number: number): Promise<Predecessor> {
    const record = number === 0 ? undefined : await recordAt(number);
    return { number, hash: record?.hash ?? genesisHash };
  }

  /**
   * The number of the newest record. The stored head is only a hint: an instance may die before it updates the head, and
   * an attacker who decreases or corrupts it must not be able to hide records.
   */
  async function head(): Promise<number> {
    const hint = Number(await keyValues.read(headKey));
    let number = Number.isSafeInteger(hint) && hint > 0 ? hint : 0;
    while ((await keyValues.read(recordKey(number + 1))) !== undefined) number += 1;
    return number;
  }

  async function recordAt(number: number): Promise<AuditRecord | undefined> {
    const raw = await keyValues.read(recordKey(number));
    return raw === undefined ? undefined : parseStored(recordShape, raw);
  }

  async function newest(count: number): Promise<readonly AuditRecord[]> {
    const last = await head();
    const numbers = Array.from({ length: Math.min(count, last) }, (_, index) => last - index);
    const records = await Promise.all(numbers.map(recordAt));
    return records.filter((record) => record !== undefined);
  }

  async function verify(): Promise<{ readonly records: number; readonly broken?: string }> {
    const last = await head();
    let previous = genesisHash;
    for (let number = 1; number <= last; number += 1) {
      const record = await recordAt(number);
      const broken = findProblem(record, number, previous);
      if (broken) return { records: last, broken };
      previous = record?.hash ?? '';
    }
    return { records: last };
  }

  async function record(event: AuditEvent): Promise<void> {
    await append(event).catch((thrown: unknown) => {
      log('error', 'the audit record could not be stored; it is only in this log', {
        why: asGatewayError(thrown).message,
      });
    });
  }

  return { append, record, newest, verify };
}

function findProblem(record: AuditRecord | undefined, number: number, previous: string): string | undefined {
  if (!record) return `record ${number} is missing or unreadable`;
  const { hash, ...fields } = record;
  if (hash !== hashOf(fields) || record.number !== number) return `record ${number} was altered`;
  return record.previous === previous ? undefined : `record ${number} does not follow record ${number - 1}`;
}

/** SHA-256 of the fields as a JSON array in a fixed order. */
function hashOf({ number, at, who, action, outcome, details, previous }: Omit<AuditRecord, 'hash'>): string {
  const text = JSON.stringify([number, at, who, action, outcome, details, previous]);
  return createHash('sha256').update(text).digest('hex');
}
