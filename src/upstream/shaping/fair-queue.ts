/** Who waits for a turn: payments before reads before status reads, tenants in rotation, then by arrival. */

import { type Lane, lanes } from '../../pis/operations.ts';
import { createLinkedList, type LinkedList } from '../../request/linked-list.ts';

/** What decides about a place in the line. */
export interface QueueKey {
  readonly lane: Lane;
  readonly tenant: string;
}

/** Whoever can stand in a line, and in one at a time. */
export interface Queueable extends QueueKey {
  /** Gives up its place; for the line alone, which puts it here to need no Map of all who stand in it (flow/roll.ts). */
  unlink?: () => boolean;
}

/** A line of bounded length. */
export interface FairQueue<One extends Queueable> {
  /**
   * Lets one more stand in the line.
   *
   * @returns who does not stand in it any more, because it is full: perhaps the new one itself
   */
  enqueue(one: One): One | undefined;
  /** Takes out the first one. */
  dequeue(): One | undefined;
  /** Takes out this one, wherever it stands. @returns whether it stood there */
  remove(one: One): boolean;
  all(): readonly One[];
  size(lane?: Lane): number;
}

/** One tenant's own line. */
interface TenantQueue<One> {
  readonly calls: LinkedList<One>;
  /** Gives up its place among the tenants of its lane. */
  unlink: () => boolean;
}

/** One lane. */
interface LaneQueue<One> {
  /** Of every tenant that was ever there: no more than are configured. */
  readonly byTenant: Map<string, TenantQueue<One>>;
  /** Those of whom somebody waits, in the order in which their turn is. */
  readonly rotation: LinkedList<TenantQueue<One>>;
}

/** An empty line. @param limit how many may stand in it */
export function createFairQueue<One extends Queueable>(limit: number): FairQueue<One> {
  const emptyLane = (): LaneQueue<One> => ({ byTenant: new Map(), rotation: createLinkedList() });
  const laneQueues: Readonly<Record<Lane, LaneQueue<One>>> = {
    write: emptyLane(),
    read: emptyLane(),
    status: emptyLane(),
  };
  const sizes = { write: 0, read: 0, status: 0 };
  const size = (lane?: Lane) => (lane ? sizes[lane] : sizes.write + sizes.read + sizes.status);

  function tenantQueueOf({ lane, tenant }: One): TenantQueue<One> {
    const { byTenant } = laneQueues[lane];
    const known = byTenant.get(tenant) ?? { calls: createLinkedList<One>(), unlink: () => false };
    byTenant.set(tenant, known);
    return known;
  }

  function remove(one: One): boolean {
    if (!one.unlink?.()) return false;
    const own = tenantQueueOf(one);
    if (own.calls.size() === 0) own.unlink();
    sizes[one.lane] -= 1;
    return true;
  }

  function append(one: One): void {
    const own = tenantQueueOf(one);
    if (own.calls.size() === 0) own.unlink = laneQueues[one.lane].rotation.append(own);
    one.unlink = own.calls.append(one);
    sizes[one.lane] += 1;
  }

  /** Who makes room: the newest of what is less urgent, else the newest of a tenant that takes up more than this one. */
  function displacedBy(one: One): One | undefined {
    const { lane } = one;
    const lesser = lanes.findLast((other) => lanes.indexOf(other) > lanes.indexOf(lane) && sizes[other] > 0);
    if (lesser) return longestQueue(laneQueues[lesser])?.calls.last();
    const most = longestQueue(laneQueues[lane]);
    return most && most.calls.size() > tenantQueueOf(one).calls.size() + 1 ? most.calls.last() : undefined;
  }

  return {
    enqueue(one) {
      const out = size() < limit ? undefined : (displacedBy(one) ?? one);
      if (out) remove(out);
      if (out !== one) append(one);
      return out;
    },
    dequeue() {
      const lane = lanes.find((each) => sizes[each] > 0);
      const own = lane && laneQueues[lane].rotation.first();
      const one = own?.calls.first();
      if (!lane || !own || !one) return undefined;
      remove(one);
      if (own.unlink()) own.unlink = laneQueues[lane].rotation.append(own); // behind the others
      return one;
    },
    remove,
    all: () =>
      lanes.flatMap((lane) => laneQueues[lane].rotation.toArray().flatMap(({ calls }) => calls.toArray())),
    size,
  };
}

const longestQueue = <One>({ rotation }: LaneQueue<One>): TenantQueue<One> | undefined =>
  rotation
    .toArray()
    .reduce<TenantQueue<One> | undefined>(
      (most, own) => (own.calls.size() > (most?.calls.size() ?? 0) ? own : most),
      undefined,
    );
