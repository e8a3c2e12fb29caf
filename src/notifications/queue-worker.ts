/**
 * Takes due records from queues and works on them, each under a lease that is extended until the work is done. If the instance is
 * killed, the leases end, and other instances take the records.
 */

import { asGatewayError } from '../request/errors.ts';
import type { ScheduledRecord, Schedules } from '../state/former/schedules.ts';

/** A record that this instance works on. */
export interface LeasedRecord {
  readonly queue: string;
  readonly key: string;
  /** As it was when it was taken; `undefined` if it was removed. */
  readonly record: ScheduledRecord | undefined;
  /** The present lease, to end it with the last change. */
  lease(): string;
  /** Aborts when another instance has taken the record, or this one stops. */
  readonly signal: AbortSignal;
  /** Whether another instance has taken the record: this one must not change it any more. */
  isLost(): boolean;
}

export interface QueueWorkerDependencies {
  readonly schedules: Pick<Schedules, 'take' | 'extend'>;
  /** The queues in effect. They take turns. */
  readonly queues: () => readonly string[];
  /** How many records this instance works on at the same time, and how many of them may be from one queue. */
  readonly maxRecords: number;
  readonly maxPerQueue: number;
  /**
   * Does the work, and ends the lease. May reject if the shared state is unavailable: the lease then ends by itself, and the record
   * is due again.
   */
  readonly handle: (leased: LeasedRecord) => Promise<void>;
  /** Called if `handle` rejects for another reason. */
  readonly onBug: (thrown: unknown) => void;
}

export interface QueueWorker {
  /**
   * Looks for due records now. To be called regularly for all queues, and when a record becomes due for its queue. Never rejects.
   */
  run(queue?: string): Promise<void>;
  /** Aborts the work in progress, and waits for its end. */
  stop(): Promise<void>;
}

/** With the interval of `run`, another instance takes over in less than 10 s. Milliseconds. */
const leaseMs = 6_000;
const extendEveryMs = 2_000;

export function createQueueWorker({
  schedules,
  queues,
  maxRecords,
  maxPerQueue,
  handle,
  onBug,
}: QueueWorkerDependencies): QueueWorker {
  const working = new Map<string, Work>();
  const counts = new Map<string, number>();
  /** Queues that may have due records, which were left because this instance had enough. In the order in which they get their turn. */
  const left = new Set<string>();
  let firstQueue = 0;
  let isStopped = false;
  /** The queues to search next. */
  let wanted: readonly string[] | undefined;
  let current: Promise<void> | undefined;
  const timer = setInterval(extendAll, extendEveryMs).unref();

  async function takeWhileWanted(): Promise<void> {
    while (wanted && !isStopped) {
      const names = wanted;
      wanted = undefined;
      await takeFrom(names);
    }
  }

  /** Takes records of these queues in turn, until none is due or this instance has enough. */
  async function takeFrom(searched: readonly string[]): Promise<void> {
    let names = searched;
    for (const name of names) left.delete(name);
    while (names.length > 0 && !isStopped) {
      const free = maxRecords - working.size;
      const group = names.slice(0, Math.max(0, free));
      const others = names.slice(group.length);
      if (group.length === 0) return others.forEach(leave);
      const limit = Math.floor(free / group.length);
      // All at once: in Redis, the commands of one tick are one batch.
      const results = await Promise.all(group.map(async (queue) => takeUpTo(queue, limit)));
      names = [...others, ...group.filter((_, index) => results[index])];
    }
  }

  /** @returns whether more records may be due that this instance may take */
  async function takeUpTo(queue: string, limit: number): Promise<boolean> {
    const own = Math.min(limit, maxPerQueue - (counts.get(queue) ?? 0));
    if (own <= 0) {
      leave(queue);
      return false;
    }
    // The shared state is unavailable: the next run tries again.
    const taken = await schedules.take(queue, own, leaseMs).catch(() => []);
    for (const { key, lease, record } of taken) start(new Work(queue, key, lease, record));
    return taken.length === own;
  }

  const leave = (queue: string) => void left.add(queue);

  function start(work: Work): void {
    const { queue } = work;
    working.set(work.id, work);
    counts.set(queue, (counts.get(queue) ?? 0) + 1);
    work.done = handle(work)
      .catch((thrown: unknown) => {
        if (!work.signal.aborted && asGatewayError(thrown).code !== 'STATE_UNAVAILABLE') onBug(thrown);
      })
      .finally(() => {
        working.delete(work.id);
        counts.set(queue, (counts.get(queue) ?? 1) - 1);
        if (counts.get(queue) === 0) counts.delete(queue);
        if (left.size > 0 && !isStopped) wake([...left]);
      });
  }

  function extendAll(): void {
    for (const work of working.values())
      schedules.extend(work.queue, work.key, work.lease(), leaseMs).then(
        (lease) => (lease === undefined ? work.lose() : work.extended(lease)),
        () => {}, // nobody else can take the record while the shared state is unavailable
      );
  }

  function wake(names: readonly string[]): void {
    wanted = [...new Set([...(wanted ?? []), ...names])];
    current ??= takeWhileWanted().finally(() => {
      current = undefined;
    });
  }

  /** Each time, another queue comes first. */
  function rotated(names: readonly string[]): readonly string[] {
    firstQueue += 1;
    const first = firstQueue % Math.max(1, names.length);
    return [...names.slice(first), ...names.slice(0, first)];
  }

  return {
    run(queue) {
      if (!isStopped) wake(queue === undefined ? [...left, ...rotated(queues())] : [queue]);
      return current ?? Promise.resolve();
    },
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await current;
      const works = [...working.values()];
      for (const work of works) work.abort();
      await Promise.all(works.map(({ done }) => done));
    },
  };
}

class Work implements LeasedRecord {
  readonly queue: string;
  readonly key: string;
  readonly record: ScheduledRecord | undefined;
  done: Promise<void> = Promise.resolve();
  #lease: string;
  #isLost = false;
  readonly #end = new AbortController();

  constructor(queue: string, key: string, lease: string, record: ScheduledRecord | undefined) {
    this.queue = queue;
    this.key = key;
    this.record = record;
    this.#lease = lease;
  }

  get id(): string {
    return `${this.queue}\n${this.key}`;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  readonly lease = (): string => this.#lease;

  readonly isLost = (): boolean => this.#isLost;

  extended(lease: string): void {
    this.#lease = lease;
  }

  lose(): void {
    this.#isLost = true;
    this.abort();
  }

  abort(): void {
    this.#end.abort();
  }
}
