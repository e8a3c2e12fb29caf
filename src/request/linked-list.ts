/**
 * Insertion-ordered linked list with O(1) removal, for objects that live as long as a request.
 *
 * A Map or Set would keep such objects alive: in a long-running process its table is in the old generation of V8's heap,
 * and it is replaced again and again as entries come and go. The replaced table keeps its entries from being collected
 * while they are young, which costs more than all the rest of a call (docs/architecture/performance.md).
 */

export interface LinkedList<Value> {
  /** @returns a function that removes the value, and returns whether it was still in the list */
  append(value: Value): () => boolean;
  /** The oldest value. */
  first(): Value | undefined;
  /** The newest value. */
  last(): Value | undefined;
  /** The oldest value that matches. */
  find(matches: (value: Value) => boolean): Value | undefined;
  toArray(): readonly Value[];
  size(): number;
}

interface ListNode<Value> {
  readonly value: Value;
  previous: ListNode<Value> | undefined;
  next: ListNode<Value> | undefined;
  isLinked: boolean;
}

export function createLinkedList<Value>(): LinkedList<Value> {
  let first: ListNode<Value> | undefined;
  let last: ListNode<Value> | undefined;
  let size = 0;

  function remove(node: ListNode<Value>): boolean {
    if (!node.isLinked) return false;
    const { previous, next } = node;
    if (previous) previous.next = next;
    else first = next;
    if (next) next.previous = previous;
    else last = previous;
    // A removed node that is still referenced must not keep its neighbours alive.
    node.previous = undefined;
    node.next = undefined;
    node.isLinked = false;
    size -= 1;
    return true;
  }

  return {
    append(value) {
      const node: ListNode<Value> = { value, previous: last, next: undefined, isLinked: true };
      if (last) last.next = node;
      else first = node;
      last = node;
      size += 1;
      return () => remove(node);
    },
    first: () => first?.value,
    last: () => last?.value,
    find(matches) {
      let node = first;
      while (node && !matches(node.value)) node = node.next;
      return node?.value;
    },
    toArray() {
      const values: Value[] = [];
      for (let node = first; node; node = node.next) values.push(node.value);
      return values;
    },
    size: () => size,
  };
}
