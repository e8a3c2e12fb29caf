/** Who waits for a turn: payments before reads before status reads, tenants in rotation, then by arrival. */

import { type Lane, lanes } from '../../pis/operations.ts';

/** Whoever can stand in the line. */
export interface Waiting {
  readonly lane: Lane;
  readonly tenant: string;
}

/** A line of bounded length. */
export interface WaitingLine<One extends Waiting> {
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

/** One lane: each tenant's own line, in the order in which their turn is. */
type Tenants<One> = Map<string, Set<One>>;

/** An empty line. @param limit how many may stand in it */
export function createWaitingLine<One extends Waiting>(limit: number): WaitingLine<One> {
  const inLane: Readonly<Record<Lane, Tenants<One>>> = {
    write: new Map(),
    read: new Map(),
    status: new Map(),
  };
  const sizes = { write: 0, read: 0, status: 0 };
  const size = (lane?: Lane) => (lane ? sizes[lane] : sizes.write + sizes.read + sizes.status);

  function remove(one: One): boolean {
    const tenants = inLane[one.lane];
    const own = tenants.get(one.tenant);
    if (!own?.delete(one)) return false;
    if (own.size === 0) tenants.delete(one.tenant);
    sizes[one.lane] -= 1;
    return true;
  }

  function append(one: One): void {
    const own = inLane[one.lane].get(one.tenant);
    if (own) own.add(one);
    else inLane[one.lane].set(one.tenant, new Set([one]));
    sizes[one.lane] += 1;
  }

  /** Who makes room: the newest of what is less urgent, else the newest of a tenant that takes up more than this one. */
  function makingRoomFor({ lane, tenant }: One): One | undefined {
    const lesser = lanes.findLast((other) => lanes.indexOf(other) > lanes.indexOf(lane) && sizes[other] > 0);
    if (lesser) return newestOf(longest(inLane[lesser]));
    const most = longest(inLane[lane]);
    const own = inLane[lane].get(tenant)?.size ?? 0;
    return most && most.size > own + 1 ? newestOf(most) : undefined;
  }

  return {
    add(one) {
      const out = size() < limit ? undefined : (makingRoomFor(one) ?? one);
      if (out) remove(out);
      if (out !== one) append(one);
      return out;
    },
    next() {
      const tenants = lanes.map((lane) => inLane[lane]).find(({ size: some }) => some > 0);
      const [own] = tenants?.values() ?? [];
      const [one] = own ?? [];
      if (!tenants || !own || !one) return undefined;
      remove(one);
      if (tenants.delete(one.tenant)) tenants.set(one.tenant, own); // behind the others
      return one;
    },
    remove,
    all: () => lanes.flatMap((lane) => [...inLane[lane].values()].flatMap((own) => [...own])),
    size,
  };
}

const longest = <One>(tenants: Tenants<One>): Set<One> | undefined =>
  [...tenants.values()].reduce<Set<One> | undefined>(
    (most, own) => (own.size > (most?.size ?? 0) ? own : most),
    undefined,
  );

const newestOf = <One>(own: Set<One> | undefined): One | undefined => (own ? [...own].at(-1) : undefined);
