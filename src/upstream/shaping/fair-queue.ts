/** A bounded queue with fair order: payments before reads before status reads, tenants round-robin, then by arrival. */

import { type Lane, lanes } from '../../pis/operations.ts';
import { createLinkedList, type LinkedList } from '../../request/linked-list.ts';

/** Determines the position in the queue. */
export interface QueueKey {
  readonly lane: Lane;
  readonly tenant: string;
}

/** An item of at most one queue. */
export interface Queueable extends QueueKey {
  /** Set and used by the queue: removes the item in O(1) without a Map of all items (linked-list.ts). */
  unlink?: () => boolean;
}

export interface FairQueue<Item extends Queueable> {
  /** Adds an item. @returns the item that a full queue drops for it, possibly the new item itself */
  enqueue(item: Item): Item | undefined;
  /** Removes the first item whose lane and tenant have a free slot. */
  dequeue(slots: FreeSlots): Item | undefined;
  /** How many items of a lane have a free slot now. */
  servable(lane: Lane, slots: FreeSlots): number;
  /** Removes an item from any position. @returns whether it was in the queue */
  remove(item: Item): boolean;
  all(): readonly Item[];
  size(lane?: Lane, tenant?: string): number;
}

export interface FreeSlots {
  /** How many items of a lane may be served: of this tenant, or of all tenants together. 0 or less = none. */
  free(lane: Lane, tenant?: string): number;
}

interface LaneQueue<Item> {
  /** Keeps every tenant that was ever queued: at most as many as are configured. */
  readonly byTenant: Map<string, TenantQueue<Item>>;
  /** Tenants with items, in round-robin order. */
  readonly rotation: LinkedList<TenantQueue<Item>>;
}

interface TenantQueue<Item> {
  readonly tenant: string;
  readonly items: LinkedList<Item>;
  /** Removes the tenant from the rotation. */
  unlink: () => boolean;
}

/** @param limit maximum size */
export function createFairQueue<Item extends Queueable>(limit: number): FairQueue<Item> {
  const laneQueues: Readonly<Record<Lane, LaneQueue<Item>>> = {
    write: createLaneQueue(),
    read: createLaneQueue(),
    status: createLaneQueue(),
  };
  const sizes = { write: 0, read: 0, status: 0 };
  function size(lane?: Lane, tenant?: string): number {
    if (lane === undefined) return sizes.write + sizes.read + sizes.status;
    return tenant === undefined ? sizes[lane] : (laneQueues[lane].byTenant.get(tenant)?.items.size() ?? 0);
  }

  function append(item: Item): void {
    const queue = tenantQueueOf(item);
    if (queue.items.size() === 0) queue.unlink = laneQueues[item.lane].rotation.append(queue);
    item.unlink = queue.items.append(item);
    sizes[item.lane] += 1;
  }

  function remove(item: Item): boolean {
    if (!item.unlink?.()) return false;
    const queue = tenantQueueOf(item);
    if (queue.items.size() === 0) queue.unlink();
    sizes[item.lane] -= 1;
    return true;
  }

  function tenantQueueOf({ lane, tenant }: Item): TenantQueue<Item> {
    const { byTenant } = laneQueues[lane];
    const queue = byTenant.get(tenant) ?? {
      tenant,
      items: createLinkedList<Item>(),
      unlink: () => false,
    };
    byTenant.set(tenant, queue);
    return queue;
  }

  /** The newest item of a less urgent lane, or else of a tenant with more items in the same lane. */
  function displacedBy(item: Item): Item | undefined {
    const { lane } = item;
    const lower = lanes.findLast((other) => lanes.indexOf(other) > lanes.indexOf(lane) && sizes[other] > 0);
    if (lower) return longestQueue(laneQueues[lower])?.items.last();
    const longest = longestQueue(laneQueues[lane]);
    return longest && longest.items.size() > tenantQueueOf(item).items.size() + 1
      ? longest.items.last()
      : undefined;
  }

  return {
    enqueue(item) {
      const dropped = size() < limit ? undefined : (displacedBy(item) ?? item);
      if (dropped) remove(dropped);
      if (dropped !== item) append(item);
      return dropped;
    },
    dequeue(slots) {
      for (const lane of lanes) {
        if (sizes[lane] === 0 || slots.free(lane) <= 0) continue;
        const { rotation } = laneQueues[lane];
        const queue = rotation.find(({ tenant }) => slots.free(lane, tenant) > 0);
        const item = queue?.items.first();
        if (!queue || !item) continue;
        remove(item);
        if (queue.unlink()) queue.unlink = rotation.append(queue); // behind the other tenants
        return item;
      }
      return undefined;
    },
    servable(lane, slots) {
      const free = sizes[lane] === 0 ? 0 : slots.free(lane);
      if (free <= 0) return 0;
      const servable = laneQueues[lane].rotation
        .toArray()
        .reduce(
          (sum, { tenant, items }) => sum + Math.max(0, Math.min(items.size(), slots.free(lane, tenant))),
          0,
        );
      return Math.min(free, servable);
    },
    remove,
    all: () =>
      lanes.flatMap((lane) => laneQueues[lane].rotation.toArray().flatMap(({ items }) => items.toArray())),
    size,
  };
}

const createLaneQueue = <Item>(): LaneQueue<Item> => ({ byTenant: new Map(), rotation: createLinkedList() });

const longestQueue = <Item>({ rotation }: LaneQueue<Item>): TenantQueue<Item> | undefined =>
  rotation
    .toArray()
    .reduce<TenantQueue<Item> | undefined>(
      (longest, queue) => (queue.items.size() > (longest?.items.size() ?? 0) ? queue : longest),
      undefined,
    );
