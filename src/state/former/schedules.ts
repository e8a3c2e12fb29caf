/** The interface of durable records with due times, which the instances share like a queue of work. */

/**
 * Durable records with due times. The instances take records from queues when they are due; each one is leased to the instance that
 * takes it, and is due again when the lease ends.
 *
 * A record can be in several queues, with one due time in each. Due times are on the clock of the store. Every operation is executed
 * in one step, except `take` and `promote`, which may affect some records before others.
 */
export interface Schedules {
  /**
   * @returns `undefined` if there is no record
   * @throws GatewayError STATE_UNAVAILABLE (here and in every operation) as `KeyValues` does; a change may still have taken effect
   */
  read(key: string): Promise<ScheduledRecord | undefined>;
  /**
   * Compare-and-set of a record, together with its due times.
   *
   * @param version of the record that is replaced; 0 if there must be none
   * @param text    `undefined` removes the record
   * @param changes apply only if the record is written
   * @returns the new version, or `undefined` if the record has another version
   */
  write(
    key: string,
    version: number,
    text: string | undefined,
    changes: readonly DueChange[],
  ): Promise<number | undefined>;
  /** Takes records that are due, the longest due first. @param leaseMs how long they are leased, > 0 */
  take(queue: string, limit: number, leaseMs: number): Promise<readonly TakenRecord[]>;
  /** Extends a lease, which ends `leaseMs` from now on. @returns the new lease; `undefined` if another instance has taken the record */
  extend(queue: string, key: string, lease: string, leaseMs: number): Promise<string | undefined>;
  /** Changes a due time without changing the record. */
  reschedule(key: string, change: DueChange): Promise<void>;
  /** Removes the first records from one queue, and makes them due in another one. Leased ones stay leased. */
  promote(from: string, to: string, limit: number): Promise<void>;
  /** The records of a queue, leased ones included, the first due first in each part of the store. */
  list(queue: string, limit: number): Promise<readonly ListedRecord[]>;
  /** How many records a queue has, leased ones included, and how many of them are due. */
  count(queue: string): Promise<QueueCounts>;
}

export interface ScheduledRecord {
  readonly version: number;
  readonly text: string;
}

export interface ListedRecord {
  readonly key: string;
  readonly record: ScheduledRecord;
}

export interface TakenRecord {
  readonly key: string;
  /** Identifies the lease. */
  readonly lease: string;
  /** `undefined` if the record was removed, but not from this queue. */
  readonly record: ScheduledRecord | undefined;
}

export interface DueChange {
  readonly queue: string;
  /** Milliseconds from now, >= 0; `undefined` removes the record from the queue. */
  readonly inMs: number | undefined;
  /** Ends this lease; the change has no effect if another instance has taken the record. Without it, leased records do not change. */
  readonly lease?: string | undefined;
}

export interface QueueCounts {
  readonly all: number;
  readonly due: number;
}
