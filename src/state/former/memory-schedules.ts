/** Schedules in the memory of one process. */

import type { DueChange, ScheduledRecord, Schedules } from './schedules.ts';

/** @param now milliseconds on a monotonic clock */
export function createMemorySchedules(now: () => number): Schedules {
  const records = new Map<string, ScheduledRecord>();
  const queues = new Map<string, Queue>();
  const queueNamed = (name: string): Queue => {
    const queue = queues.get(name) ?? createQueue();
    queues.set(name, queue);
    return queue;
  };

  function changeDue(key: string, { queue: name, inMs, lease }: DueChange): void {
    const queue = queueNamed(name);
    const entry = queue.entryOf(key);
    const isOurs = lease === undefined ? !isLeased(entry, now()) : entry && leaseOf(entry) === lease;
    if (!isOurs) return;
    if (inMs === undefined) queue.remove(key);
    else queue.put({ key, dueMs: Math.floor(now() + inMs), isLease: false }); // 0 means now
    if (queue.size() === 0) queues.delete(name);
  }

  function lease(queue: Queue, key: string, leaseMs: number): string {
    const entry = { key, dueMs: Math.ceil(now() + leaseMs), isLease: true };
    queue.put(entry);
    return leaseOf(entry);
  }

  return {
    read: async (key) => records.get(key),
    async write(key, version, text, changes) {
      if ((records.get(key)?.version ?? 0) !== version) return undefined;
      const next = Math.max(version + 1, Math.floor(now()));
      if (text === undefined) records.delete(key);
      else records.set(key, { version: next, text: text.toWellFormed() });
      for (const change of changes) changeDue(key, change);
      return next;
    },
    async take(name, limit, leaseMs) {
      const queue = queueNamed(name);
      return queue.due(now(), limit).map(({ key }) => {
        return { key, lease: lease(queue, key, leaseMs), record: records.get(key) };
      });
    },
    async extend(name, key, current, leaseMs) {
      const queue = queueNamed(name);
      const entry = queue.entryOf(key);
      return entry && leaseOf(entry) === current ? lease(queue, key, leaseMs) : undefined;
    },
    reschedule: async (key, change) => changeDue(key, change),
    async promote(from, to, limit) {
      for (const { key } of queueNamed(from).due(Number.POSITIVE_INFINITY, limit)) {
        changeDue(key, { queue: from, inMs: undefined });
        if (queueNamed(to).entryOf(key)) changeDue(key, { queue: to, inMs: 0 });
      }
    },
    async list(name, limit) {
      const listed = queueNamed(name).due(Number.POSITIVE_INFINITY, limit);
      return listed.flatMap(({ key }) => {
        const record = records.get(key);
        return record ? [{ key, record }] : [];
      });
    },
    async count(name) {
      const queue = queueNamed(name);
      return { all: queue.size(), due: queue.countDue(now()) };
    },
  };
}

interface Entry {
  readonly key: string;
  /** On the clock of the schedules; of a leased record, the end of the lease. */
  readonly dueMs: number;
  readonly isLease: boolean;
}

const isLeased = (entry: Entry | undefined, nowMs: number) => entry?.isLease && entry.dueMs > nowMs;
const leaseOf = ({ dueMs, isLease }: Entry) => (isLease ? String(dueMs) : '');

interface Queue {
  entryOf(key: string): Entry | undefined;
  put(entry: Entry): void;
  remove(key: string): void;
  /** The entries that are due, the longest due first. They stay in the queue. */
  due(nowMs: number, limit: number): readonly Entry[];
  countDue(nowMs: number): number;
  size(): number;
}

/**
 * A binary heap by due time. An entry that was replaced or removed stays in the heap until it is its first one, or until most
 * entries of the heap are such ones.
 */
function createQueue(): Queue {
  const current = new Map<string, Entry>();
  const heap: Entry[] = [];
  const isBefore = (one: number, other: number) => (heap[one]?.dueMs ?? 0) < (heap[other]?.dueMs ?? 0);

  function swap(one: number, other: number): void {
    const [first, second] = [heap[one], heap[other]];
    if (!first || !second) return;
    heap[one] = second;
    heap[other] = first;
  }

  function push(entry: Entry): void {
    let at = heap.push(entry) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(at, parent); parent = (at - 1) >> 1) {
      swap(at, parent);
      at = parent;
    }
  }

  function removeFirst(): void {
    swap(0, heap.length - 1);
    heap.pop();
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const child = right < heap.length && isBefore(right, left) ? right : left;
      if (child >= heap.length || !isBefore(child, at)) return;
      swap(child, at);
      at = child;
    }
  }

  return {
    entryOf: (key) => current.get(key),
    put(entry) {
      current.set(entry.key, entry);
      push(entry);
      if (heap.length < 4 * current.size + 64) return;
      heap.length = 0;
      for (const each of current.values()) push(each);
    },
    remove: (key) => void current.delete(key),
    due(nowMs, limit) {
      const due: Entry[] = [];
      while (due.length < limit) {
        const [first] = heap;
        if (!first || first.dueMs > nowMs) break;
        removeFirst();
        if (current.get(first.key) === first) due.push(first);
      }
      for (const entry of due) push(entry);
      return due;
    },
    countDue(nowMs) {
      let due = 0;
      for (const { dueMs } of current.values()) if (dueMs <= nowMs) due += 1;
      return due;
    },
    size: () => current.size,
  };
}
