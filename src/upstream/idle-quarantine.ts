/**
 * Holds a connection back for a moment before it is reused: bytes that the bank sends after its response would otherwise be
 * taken for the response to the next request, possibly of another tenant.
 *
 * There is no timer unless a request waits: the pool asks for connections when it needs one.
 */

interface QuarantinedConnection {
  /** Start of its quarantine, on the clock of `performance.now()`. */
  readonly idleSinceMs: number;
}

export interface IdleQuarantine<Connection> {
  add(connection: Connection): void;
  /** Removes a connection that has closed. */
  remove(connection: Connection): void;
  /** Releases the connections whose quarantine is over, in order. */
  release(): readonly Connection[];
  /** Whether the quarantine time of the first connection has passed. It is released as soon as the sockets have been read. */
  isDue(): boolean;
  /** In the order in which their quarantines began. */
  connections(): readonly Connection[];
  /** Calls `onRelease` when the next connection can be released. */
  awaitNext(): void;
}

/** How long a connection must stay silent. */
const quarantineMs = 5;

export function createIdleQuarantine<Connection extends QuarantinedConnection>(
  onRelease: () => void,
): IdleQuarantine<Connection> {
  let quarantined: Connection[] = [];
  let isAwaited = false;
  let hasTimer = false;
  let isTurnObserved = false;
  let lastTurnMs = Number.NEGATIVE_INFINITY;
  /** All data that arrived before this time has been read. The clock is not enough, because the process may have stalled. */
  let readUntilMs = Number.NEGATIVE_INFINITY;

  /** Node reads all sockets between two immediates: at the second one, all data from before the first one has been read. */
  function observeTurn(): void {
    if (isTurnObserved) return;
    isTurnObserved = true;
    setImmediate(onTurn);
  }

  function onTurn(): void {
    isTurnObserved = false;
    readUntilMs = lastTurnMs;
    lastTurnMs = performance.now();
    if (isAwaited) continueAwaiting();
  }

  function continueAwaiting(): void {
    const [first] = quarantined;
    isAwaited = first !== undefined && !isOver(first);
    if (first && isAwaited) observeWhenDue(first);
    else onRelease();
  }

  function observeWhenDue({ idleSinceMs }: Connection): void {
    const remainingMs = idleSinceMs + quarantineMs - performance.now();
    if (remainingMs <= 0) observeTurn();
    else if (!hasTimer) {
      hasTimer = true;
      setTimeout(onTimer, Math.ceil(remainingMs));
    }
  }

  function onTimer(): void {
    hasTimer = false;
    observeTurn();
  }

  const isOver = ({ idleSinceMs }: Connection) => idleSinceMs + quarantineMs <= readUntilMs;

  function isDue(): boolean {
    const [first] = quarantined;
    return first !== undefined && first.idleSinceMs + quarantineMs <= performance.now();
  }

  return {
    add(connection) {
      quarantined.push(connection);
      observeTurn();
    },
    remove(connection) {
      quarantined = quarantined.filter((other) => other !== connection);
    },
    release() {
      if (isDue()) observeTurn();
      let over = 0;
      for (let next = quarantined[0]; next && isOver(next); next = quarantined[over]) over++;
      return over === 0 ? none : quarantined.splice(0, over);
    },
    isDue,
    connections: () => quarantined,
    awaitNext() {
      const [first] = quarantined;
      if (first && !isAwaited) observeWhenDue(first);
      isAwaited = first !== undefined;
    },
  };
}

const none: readonly never[] = [];
