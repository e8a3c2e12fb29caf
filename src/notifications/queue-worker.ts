/**
 * Takes subscriptions from the queues of due work, and works on them, each under a lease that is extended until the work is done. If the
 * instance is killed, the leases end, and other instances take them.
 */

import { isOutage } from '../store/database.ts';
import type { SubscriptionTable, TakenSubscription, Work, WorkQueue } from '../store/subscriptions.ts';

/** A subscription that this instance works on. */
export interface LeasedWork {
  /** As it was when it was taken. */
  readonly taken: TakenSubscription;
  /** Aborts when the lease is lost, or this instance stops. */
  readonly signal: AbortSignal;
  /** Whether the lease is lost: this instance must not change the subscription any more. */
  isLost(): boolean;
  /** Ends the lease. @param inMs when the work is due again; `undefined`: never @throws DatabaseError */
  leave(inMs: number | undefined): Promise<void>;
}

export interface QueueWorkerDependencies {
  readonly work: Work;
  readonly table: Pick<SubscriptionTable, 'take' | 'extend' | 'reschedule'>;
  /** The queues in effect. They take turns. */
  readonly queues: () => readonly WorkQueue[];
  /** How many subscriptions this instance works on at the same time, and how many of them may be from one queue. */
  readonly maxAtOnce: number;
  readonly maxPerQueue: number;
  /**
   * Does the work, and ends the lease. May reject if the database is unavailable: the lease then ends by itself, and the work is due
   * again.
   */
  readonly handle: (leased: LeasedWork) => Promise<void>;
  /** Called if `handle` rejects for another reason. The work is due again after a while. */
  readonly onBug: (thrown: unknown) => void;
}

export interface QueueWorker {
  /** Looks for due work now. To be called regularly for all queues, and when work becomes due in its queue. Never rejects. */
  run(queue?: WorkQueue): Promise<void>;
  /** Aborts the work in progress, and waits for its end. */
  stop(): Promise<void>;
}

/** With the interval of `run`, another instance takes over in less than 10 s. Milliseconds. */
const leaseMs = 6_000;
const extendEveryMs = 2_000;
/** Until work that has failed by a bug is due again. Milliseconds. */
const afterBugMs = 600_000;

const nameOf = ({ tenant, environment }: WorkQueue) => JSON.stringify([tenant, environment]);

export function createQueueWorker({
  work,
  table,
  queues,
  maxAtOnce,
  maxPerQueue,
  handle,
  onBug,
}: QueueWorkerDependencies): QueueWorker {
  const working = new Set<Job>();
  const counts = new Map<string, number>();
  /** Queues that may have due work, which was left because this instance had enough. In the order in which they get their turn. */
  const left = new Map<string, WorkQueue>();
  let firstQueue = 0;
  let isStopped = false;
  /** The queues to search next. */
  let wanted: readonly WorkQueue[] | undefined;
  let current: Promise<void> | undefined;
  const timer = setInterval(() => void extendAll(), extendEveryMs).unref();

  const countOf = (queue: WorkQueue) => counts.get(nameOf(queue)) ?? 0;
  const postpone = (queue: WorkQueue) => void left.set(nameOf(queue), queue);
  const leave = ({ id, lease }: TakenSubscription, inMs: number | undefined) =>
    table.reschedule(work, id, { inMs, lease });

  async function takeWhileWanted(): Promise<void> {
    while (wanted && !isStopped) {
      const searched = wanted;
      wanted = undefined;
      await takeFrom(searched);
    }
  }

  /** Takes work from these queues, from each the same number, until none is due or this instance has enough. */
  async function takeFrom(searched: readonly WorkQueue[]): Promise<void> {
    let due = searched;
    for (const queue of due) left.delete(nameOf(queue));
    while (due.length > 0 && !isStopped) {
      const free = Math.max(0, maxAtOnce - working.size);
      const hasRoom = (queue: WorkQueue) => countOf(queue) < maxPerQueue;
      const open = due.filter(hasRoom);
      const group = open.slice(0, free);
      for (const queue of due.filter((each) => !hasRoom(each))) postpone(queue);
      if (group.length === 0) return open.forEach(postpone);
      const room = Math.min(...group.map((queue) => maxPerQueue - countOf(queue)));
      const limit = Math.min(room, Math.floor(free / group.length));
      // The database is unavailable: the next run tries again.
      const askedAtMs = performance.now();
      const answer = await table.take(work, group, limit, leaseMs).catch(() => []);
      // If the answer comes late, another instance may take the same work at this moment.
      const taken = performance.now() - askedAtMs < leaseMs / 2 ? answer : [];
      const byQueue = Map.groupBy(taken, (one) => nameOf(queueOf(one)));
      for (const one of taken) start(new Job(one, (inMs) => leave(one, inMs)));
      due = [
        ...open.slice(free),
        ...group.filter((queue) => (byQueue.get(nameOf(queue))?.length ?? 0) === limit),
      ];
    }
  }

  const queueOf = ({ tenant, environment }: TakenSubscription): WorkQueue =>
    work === 'read' ? { tenant, environment } : { tenant };

  function start(job: Job): void {
    const name = nameOf(queueOf(job.taken));
    for (const other of working) if (other.taken.id === job.taken.id) other.lose(); // unnoticed while the database was unavailable
    working.add(job);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    job.done = handle(job)
      .catch(async (thrown: unknown) => {
        if (job.signal.aborted || isOutage(thrown)) return;
        onBug(thrown);
        await job.leave(afterBugMs);
      })
      .catch(() => {}) // the lease ends by itself
      .finally(() => {
        working.delete(job);
        counts.set(name, (counts.get(name) ?? 1) - 1);
        if (counts.get(name) === 0) counts.delete(name);
        if (left.size > 0 && !isStopped) wake([...left.values()]);
      });
  }

  async function extendAll(): Promise<void> {
    const jobs = [...working];
    if (jobs.length === 0) return;
    const leases = jobs.map(({ taken: { id, lease } }) => ({ id, lease }));
    // While the database is unavailable, the lease may be lost unnoticed: the next answer says so.
    const held = await table.extend(work, leases, leaseMs).catch(() => undefined);
    for (const job of jobs) if (held?.has(job.taken.id) === false) job.lose();
  }

  function wake(some: readonly WorkQueue[]): void {
    wanted = [...new Map([...(wanted ?? []), ...some].map((queue) => [nameOf(queue), queue])).values()];
    current ??= takeWhileWanted().finally(() => {
      current = undefined;
      if (wanted && !isStopped) wake([]); // since the last search
    });
  }

  /** Each time, another queue comes first. */
  function rotated(all: readonly WorkQueue[]): readonly WorkQueue[] {
    firstQueue += 1;
    const first = firstQueue % Math.max(1, all.length);
    return [...all.slice(first), ...all.slice(0, first)];
  }

  return {
    run(queue) {
      if (!isStopped) wake(queue === undefined ? [...left.values(), ...rotated(queues())] : [queue]);
      return current ?? Promise.resolve();
    },
    async stop() {
      isStopped = true;
      clearInterval(timer);
      await current;
      const jobs = [...working];
      for (const job of jobs) job.abort();
      await Promise.all(jobs.map(({ done }) => done));
    },
  };
}

class Job implements LeasedWork {
  readonly taken: TakenSubscription;
  readonly leave: LeasedWork['leave'];
  done: Promise<void> = Promise.resolve();
  #isLost = false;
  readonly #end = new AbortController();

  constructor(taken: TakenSubscription, leave: LeasedWork['leave']) {
    this.taken = taken;
    this.leave = leave;
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  readonly isLost = (): boolean => this.#isLost;

  lose(): void {
    this.#isLost = true;
    this.abort();
  }

  abort(): void {
    this.#end.abort();
  }
}
