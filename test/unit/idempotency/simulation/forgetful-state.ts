/** A state in memory that can lose data: its last changes, one partition, or everything. */

import { createMemoryState } from '../../../../src/state/memory.ts';
import type { Fence, State } from '../../../../src/state/ports.ts';

export interface ForgetfulState extends State {
  /** Restarts the store without its last changes, as after a failover. */
  loseLast(changes: number): Promise<void>;
  /** Restarts the store without the last mark before sending, and without all that followed; not if there is none. */
  loseLastMark(): Promise<void>;
  /** Empties a partition. */
  losePartition(which: number): Promise<void>;
  /** Empties the store while it runs. */
  loseAll(): Promise<void>;
  hasLost(): boolean;
  /** How often the store was restarted. A connection serves one run of the store. */
  restarts(): number;
  onRestart(listener: () => void): void;
}

/** Applies a change to a new store. */
type Change = { readonly key: string; readonly apply: (state: State) => Promise<unknown> };

/** The partitions of the ledger on one server. */
export const oneServer: readonly string[] = [''];
/** Those in a small cluster. */
export const cluster: readonly string[] = ['{A}', '{B}'];

export function createForgetfulState(partitions: readonly string[]): ForgetfulState {
  let store = createMemoryState();
  let changes: Change[] = [];
  let restarts = 0;
  const restartListeners: (() => void)[] = [];
  let hasLost = false;
  /** How many changes came before the last mark. */
  let beforeMark = Number.POSITIVE_INFINITY;

  function record(key: string, value: string, ttlMs?: number): void {
    const expiresAt = ttlMs === undefined ? undefined : performance.now() + ttlMs;
    const apply = async ({ keyValues }: State) => {
      if (expiresAt === undefined) return keyValues.write(key, value);
      const leftMs = expiresAt - performance.now();
      return leftMs > 0 ? keyValues.write(key, value, leftMs) : keyValues.remove(key);
    };
    changes.push({ key, apply });
  }

  async function recordFence(fence: Fence | undefined): Promise<void> {
    const epoch = fence && (await store.keyValues.read(fence.key));
    if (epoch !== undefined) record(fence?.key ?? '', epoch);
  }

  function restart(): void {
    restarts += 1;
    for (const listener of restartListeners) listener();
  }

  async function rebuild(retained: Change[]): Promise<void> {
    hasLost ||= retained.length < changes.length;
    changes = retained;
    beforeMark = Number.POSITIVE_INFINITY;
    const next = createMemoryState();
    for (const { apply } of changes) await apply(next);
    store = { ...next, pubsub: store.pubsub };
  }

  return {
    ...store,
    partitions,
    identity: async () => `run ${restarts}`,
    hasLost: () => hasLost,
    restarts: () => restarts,
    onRestart: (listener) => void restartListeners.push(listener),
    keyValues: {
      read: (key) => store.keyValues.read(key),
      async write(key, value, ttlMs) {
        await store.keyValues.write(key, value, ttlMs);
        record(key, value, ttlMs);
      },
      async writeIfAbsent(key, value, ttlMs, fence) {
        const isSet = await store.keyValues.writeIfAbsent(key, value, ttlMs, fence);
        if (isSet) {
          record(key, value, ttlMs);
          await recordFence(fence);
        }
        return isSet;
      },
      async replace(key, expected, value, ttlMs, { fence, confirmedBy } = {}) {
        const isSet = await store.keyValues.replace(key, expected, value, ttlMs, { fence });
        if (isSet) {
          if (confirmedBy) beforeMark = changes.length;
          record(key, value, ttlMs);
          await recordFence(fence);
        }
        return isSet;
      },
      async remove(key) {
        await store.keyValues.remove(key);
        changes.push({ key, apply: ({ keyValues }) => keyValues.remove(key) });
      },
      async removeIf(key, expected) {
        const isRemoved = await store.keyValues.removeIf(key, expected);
        if (isRemoved) changes.push({ key, apply: ({ keyValues }) => keyValues.remove(key) });
        return isRemoved;
      },
    },
    sets: {
      async add(key, member) {
        await store.sets.add(key, member);
        changes.push({ key, apply: ({ sets }) => sets.add(key, member) });
      },
      async remove(key, member) {
        await store.sets.remove(key, member);
        changes.push({ key, apply: ({ sets }) => sets.remove(key, member) });
      },
      members: (key) => store.sets.members(key),
    },
    async loseLast(count) {
      restart();
      await rebuild(changes.slice(0, Math.max(0, changes.length - count)));
    },
    async loseLastMark() {
      if (beforeMark >= changes.length) return;
      restart();
      await rebuild(changes.slice(0, beforeMark));
    },
    async losePartition(which) {
      restart();
      const partition = partitions[which % partitions.length] ?? '';
      await rebuild(changes.filter(({ key }) => partitionHolding(key, partitions) !== partition));
    },
    loseAll: () => rebuild([]),
  };
}

/** A former name of an entry has no hash tag, and can be on another node than the present one. */
function partitionHolding(key: string, partitions: readonly string[]): string | undefined {
  if (!key.startsWith('ledger:entry:')) return partitions.find((partition) => key.includes(partition));
  return partitions[key.charCodeAt(key.length - 1) % partitions.length];
}
