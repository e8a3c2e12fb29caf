/** Who waits for a turn: payments before reads before status reads, tenants in rotation, then by arrival. */

import { createRoll, type Roll } from '../../flow/roll.ts';
import { type Lane, lanes } from '../../pis/operations.ts';

/** What decides about a place in the line. */
export interface Waiting {
  readonly lane: Lane;
  readonly tenant: string;
}

/** Whoever can stand in a line, and in one at a time. */
export interface Standing extends Waiting {
  /** Gives up its place; for the line alone, which puts it here to need no Map of all who stand in it (flow/roll.ts). */
  leave?: () => boolean;
}

/** A line of bounded length. */
export interface WaitingLine<One extends Standing> {
  /**
   * Lets one more stand in the line.
   *
   * @returns who does not stand in it any more, because it is full: perhaps the new one itself
   */
  add(one: One): One | undefined;
  /** Takes out the first one. */
  next(): One | undefined;
  /** Takes out this one, wherever it stands. @returns whether it stood there */
  remove(one: One): boolean;
  all(): readonly One[];
  size(lane?: Lane): number;
}

/** One tenant's own line. */
interface Own<One> {
  readonly ones: Roll<One>;
  /** Gives up its place among the tenants of its lane. */
  stepOut: () => boolean;
}

/** One lane. */
interface Tenants<One> {
  /** Of every tenant that was ever there: no more than are configured. */
  readonly own: Map<string, Own<One>>;
  /** Those of whom somebody waits, in the order in which their turn is. */
  readonly rotation: Roll<Own<One>>;
}

/** An empty line. @param limit how many may stand in it */
export function createWaitingLine<One extends Standing>(limit: number): WaitingLine<One> {
  const noTenants = (): Tenants<One> => ({ own: new Map(), rotation: createRoll() });
  const inLane: Readonly<Record<Lane, Tenants<One>>> = {
    write: noTenants(),
    read: noTenants(),
    status: noTenants(),
  };
  const sizes = { write: 0, read: 0, status: 0 };
  const size = (lane?: Lane) => (lane ? sizes[lane] : sizes.write + sizes.read + sizes.status);

  function ownOf({ lane, tenant }: One): Own<One> {
    const { own } = inLane[lane];
    const known = own.get(tenant) ?? { ones: createRoll<One>(), stepOut: () => false };
    own.set(tenant, known);
    return known;
  }

  function remove(one: One): boolean {
    if (!one.leave?.()) return false;
    const own = ownOf(one);
    if (own.ones.size() === 0) own.stepOut();
    sizes[one.lane] -= 1;
    return true;
  }

  function append(one: One): void {
    const own = ownOf(one);
    if (own.ones.size() === 0) own.stepOut = inLane[one.lane].rotation.enter(own);
    one.leave = own.ones.enter(one);
    sizes[one.lane] += 1;
  }

  /** Who makes room: the newest of what is less urgent, else the newest of a tenant that takes up more than this one. */
  function makingRoomFor(one: One): One | undefined {
    const { lane } = one;
    const lesser = lanes.findLast((other) => lanes.indexOf(other) > lanes.indexOf(lane) && sizes[other] > 0);
    if (lesser) return longest(inLane[lesser])?.ones.last();
    const most = longest(inLane[lane]);
    return most && most.ones.size() > ownOf(one).ones.size() + 1 ? most.ones.last() : undefined;
  }

  return {
    add(one) {
      const out = size() < limit ? undefined : (makingRoomFor(one) ?? one);
      if (out) remove(out);
      if (out !== one) append(one);
      return out;
    },
    next() {
      const lane = lanes.find((each) => sizes[each] > 0);
      const own = lane && inLane[lane].rotation.first();
      const one = own?.ones.first();
      if (!lane || !own || !one) return undefined;
      remove(one);
      if (own.stepOut()) own.stepOut = inLane[lane].rotation.enter(own); // behind the others
      return one;
    },
    remove,
    all: () => lanes.flatMap((lane) => inLane[lane].rotation.all().flatMap(({ ones }) => ones.all())),
    size,
  };
}

const longest = <One>({ rotation }: Tenants<One>): Own<One> | undefined =>
  rotation
    .all()
    .reduce<Own<One> | undefined>(
      (most, own) => (own.ones.size() > (most?.ones.size() ?? 0) ? own : most),
      undefined,
    );
