/**
 * The audit log: who changed what, when and why, in a chain of hashes that shows what was altered afterwards.
 *
 * Each record holds the hash of the one before it, so a changed, removed or inserted record breaks the chain. What the
 * chain cannot show: that its newest records were cut off, or that somebody who can write to the state computed all
 * hashes anew. Every record therefore stands in the log stream too.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent, AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
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
  /** @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached; the log stream has it all the same */
  append(event: AuditEvent): Promise<AuditRecord>;
  /** The newest records, newest first. */
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** Walks the whole chain. */
  verify(): Promise<{ readonly records: number; readonly broken?: string }>;
}

const headKey = 'audit:head';
const recordKey = (number: number) => `audit:${number}`;
const genesisHash = '0'.repeat(64);

/** @param keyValues where the chain is kept, shared by all instances */
export function createAuditLog(keyValues: KeyValues, log: Log): AuditLog {
  async function append(event: AuditEvent): Promise<AuditRecord> {
    let sealed: AuditRecord | undefined;
    try {
      sealed = await chain(event, await head());
      return sealed;
    } finally {
      const { details, ...rest } = event;
      log('warn', 'audit', {
        ...rest,
        details: JSON.stringify(details),
        number: sealed?.number,
        hash: sealed?.hash,
      });
    }
  }

  /** Takes the next free number: who else takes it first is linked to. */
  async function chain(event: AuditEvent, last: number): Promise<AuditRecord> {
    const before = last === 0 ? undefined : await recordAt(last);
    const unsealed = {
      number: last + 1,
      at: new Date().toISOString(),
      ...event,
      previous: before?.hash ?? genesisHash,
    };
    const record = { ...unsealed, hash: hashOf(unsealed) };
    if (!(await keyValues.writeIfAbsent(recordKey(record.number), JSON.stringify(record))))
      return chain(event, last + 1);
    await keyValues.write(headKey, String(record.number)).catch(() => {}); // only a hint
    return record;
  }

  /**
   * The number of the newest record. The head is only a hint: an instance may have died before it moved it, and
   * whoever sets it back or spoils it must not hide anything by that.
   */
  async function head(): Promise<number> {
    const hint = Number(await keyValues.read(headKey));
    let number = Number.isSafeInteger(hint) && hint > 0 ? hint : 0;
    while ((await keyValues.read(recordKey(number + 1))) !== undefined) number += 1;
    return number;
  }

  async function recordAt(number: number): Promise<AuditRecord | undefined> {
    const raw = await keyValues.read(recordKey(number));
    return raw === undefined ? undefined : parseRecord(raw);
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
      const broken = findTampering(record, number, previous);
      if (broken) return { records: last, broken };
      previous = record?.hash ?? '';
    }
    return { records: last };
  }

  async function record(event: AuditEvent): Promise<void> {
    await append(event).catch((thrown: unknown) => {
      log('error', 'an audit record stands in this log alone', { why: asGatewayError(thrown).message });
    });
  }

  return { append, record, newest, verify };
}

function findTampering(
  record: AuditRecord | undefined,
  number: number,
  previous: string,
): string | undefined {
  if (!record) return `record ${number} is missing or unreadable`;
  const { hash, ...unsealed } = record;
  if (hash !== hashOf(unsealed) || record.number !== number) return `record ${number} was altered`;
  return record.previous === previous ? undefined : `record ${number} does not follow record ${number - 1}`;
}

/** SHA-256 over the record as JSON, its names in a fixed order. */
function hashOf({ number, at, who, action, outcome, details, previous }: Omit<AuditRecord, 'hash'>): string {
  const text = JSON.stringify([number, at, who, action, outcome, details, previous]);
  return createHash('sha256').update(text).digest('hex');
}

function parseRecord(raw: string): AuditRecord | undefined {
  try {
    return recordShape.parse(JSON.parse(raw));
  } catch {
    return undefined;
  }
}
