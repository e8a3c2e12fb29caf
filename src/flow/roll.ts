/**
 * Who is present, in the order in which they came; for what lives as long as a request.
 *
 * Not a Map or a Set: in a process that has run for a while V8 makes their tables old, and makes a new one again and again
 * as entries come and go. The table before keeps whoever was in it from being collected while it is young, which costs
 * more than all the rest of a call (docs/architecture/performance.md).
 */

export interface Roll<One> {
  /** Lets one in, behind all others. @returns lets it out again, and says whether it was still there */
  enter(one: One): () => boolean;
  /** Who has been there for longest. */
  first(): One | undefined;
  /** Who came last. */
  last(): One | undefined;
  all(): readonly One[];
  size(): number;
}

/** One of the chain, and its neighbours in it. */
interface Link<One> {
  readonly one: One;
  before: Link<One> | undefined;
  behind: Link<One> | undefined;
  isPresent: boolean;
}

/** Nobody is there. */
export function createRoll<One>(): Roll<One> {
  let first: Link<One> | undefined;
  let last: Link<One> | undefined;
  let size = 0;

  function leave(link: Link<One>): boolean {
    if (!link.isPresent) return false;
    const { before, behind } = link;
    if (before) before.behind = behind;
    else first = behind;
    if (behind) behind.before = before;
    else last = before;
    // Whoever still holds this one must not hold its neighbours.
    link.before = undefined;
    link.behind = undefined;
    link.isPresent = false;
    size -= 1;
    return true;
  }

  return {
    enter(one) {
      const link: Link<One> = { one, before: last, behind: undefined, isPresent: true };
      if (last) last.behind = link;
      else first = link;
      last = link;
      size += 1;
      return () => leave(link);
    },
    first: () => first?.one,
    last: () => last?.one,
    all() {
      const ones: One[] = [];
      for (let link = first; link; link = link.behind) ones.push(link.one);
      return ones;
    },
    size: () => size,
  };
}
