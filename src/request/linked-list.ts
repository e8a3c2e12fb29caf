/**
 * Who is present, in the order in which they came; for what lives as long as a request.
 *
 * Not a Map or a Set: in a process that has run for a while V8 makes their tables old, and makes a new one again and again
 * as entries come and go. The table before keeps whoever was in it from being collected while it is young, which costs
 * more than all the rest of a call (docs/architecture/performance.md).
 */

export interface LinkedList<One> {
  /** Lets one in, behind all others. @returns lets it out again, and says whether it was still there */
  append(one: One): () => boolean;
  /** Who has been there for longest. */
  first(): One | undefined;
  /** Who came last. */
  last(): One | undefined;
  toArray(): readonly One[];
  size(): number;
}

/** One of the chain, and its neighbours in it. */
interface ListNode<One> {
  readonly value: One;
  previous: ListNode<One> | undefined;
  next: ListNode<One> | undefined;
  isLinked: boolean;
}

/** Nobody is there. */
export function createLinkedList<One>(): LinkedList<One> {
  let first: ListNode<One> | undefined;
  let last: ListNode<One> | undefined;
  let size = 0;

  function remove(node: ListNode<One>): boolean {
    if (!node.isLinked) return false;
    const { previous, next } = node;
    if (previous) previous.next = next;
    else first = next;
    if (next) next.previous = previous;
    else last = previous;
    // Whoever still holds this one must not hold its neighbours.
    node.previous = undefined;
    node.next = undefined;
    node.isLinked = false;
    size -= 1;
    return true;
  }

  return {
    append(one) {
      const link: ListNode<One> = { value: one, previous: last, next: undefined, isLinked: true };
      if (last) last.next = link;
      else first = link;
      last = link;
      size += 1;
      return () => remove(link);
    },
    first: () => first?.value,
    last: () => last?.value,
    toArray() {
      const ones: One[] = [];
      for (let link = first; link; link = link.next) ones.push(link.value);
      return ones;
    },
    size: () => size,
  };
}
