/**
 * Who is present, in the order in which they came; for what lives as long as a request.
 *
 * Not a Map or a Set: in a process that has run for a while V8 makes their tables old, and makes a new one again and again
 * as entries come and go. The table before keeps whoever was in it from being collected while it is young, which costs
 * more than all the rest of a call (docs/architecture/performance.md).
 */

export interface Roll<One> {
  /** Comes in, behind all others. @returns leaves; a second time it does nothing. It says whether One was there */
  enter(one: One): () => boolean;
  /** Who has been there for longest. */
  first(): One | undefined;
  all(): readonly One[];
  size(): number;
}

/** A link; the one without anybody is both ends of the chain. */
interface Link<One> {
  readonly one?: One;
  before: Link<One> | undefined;
  behind: Link<One> | undefined;
}

/** Nobody is there. */
export function createRoll<One>(): Roll<One> {
  const ends: Link<One> = { before: undefined, behind: undefined };
  ends.before = ends;
  ends.behind = ends;
  let size = 0;

  function leave(link: Link<One>): boolean {
    const { before, behind } = link;
    if (!before || !behind) return false;
    before.behind = behind;
    behind.before = before;
    link.before = undefined;
    link.behind = undefined;
    size -= 1;
    return true;
  }

  return {
    enter(one) {
      const last = ends.before ?? ends;
      const link: Link<One> = { one, before: last, behind: ends };
      last.behind = link;
      ends.before = link;
      size += 1;
      return () => leave(link);
    },
    first: () => ends.behind?.one,
    all() {
      const ones: One[] = [];
      for (let link = ends.behind; link && link !== ends; link = link.behind) ones.push(link.one as One);
      return ones;
    },
    size: () => size,
  };
}
