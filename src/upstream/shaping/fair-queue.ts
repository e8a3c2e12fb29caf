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
  dequeue(): Item | undefined;
  /** Removes an item from any position. @returns whether it was in the queue */
  remove(item: Item): boolean;
  all(): readonly Item[];
  size(lane?: Lane): number;
}

interface LaneQueue<Item> {
  /** Keeps every tenant that was ever queued: at most as many as are configured. */
  readonly byTenant: Map<string, TenantQueue<Item>>;
  /** Tenants with items, in round-robin order. */
  readonly rotation: LinkedList<TenantQueue<Item>>;
}

interface TenantQueue<Item> {
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
  const size = (lane?: Lane) => (lane ? sizes[lane] : sizes.write + sizes.read + sizes.status);

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
    const queue = byTenant.get(tenant) ?? { items: createLinkedList<Item>(), unlink: () => false };
    byTenant.set(tenant, queue);
    return queue;
  }

  /** Drops the newest item of the least urgent lane, or else of a tenant that uses more of this lane than the new item's. */
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
    dequeue() {
      const lane = lanes.find((each) => sizes[each] > 0);
      const queue = lane && laneQueues[lane].rotation.first();
      const item = queue?.items.first();
      if (!lane || !queue || !item) return undefined;
      remove(item);
      if (queue.unlink()) queue.unlink = laneQueues[lane].rotation.append(queue); // behind the other tenants
      return item;
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
