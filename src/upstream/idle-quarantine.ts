/**
 * Lets connections rest before they are used again: what a bank sends behind its answer would else be taken for the answer to
 * the next request, another tenant's perhaps.
 */

interface QuarantinedConnection {
  /** When its rest began, on the clock of `performance.now()`. */
  readonly idleSinceMs: number;
}

/** How long a connection must stay silent after an answer. Milliseconds. */
const quarantineMs = 5;

/** @param onReleased told of each that has rested, in the order in which they began @returns begins a rest */
export function createIdleQuarantine<One extends QuarantinedConnection>(
  onReleased: (one: One) => void,
): (one: One) => void {
  /** While there are any, one timer runs for all. */
  let quarantined: One[] = [];

  /**
   * After a stall of our own process the timers run before the sockets are read: what has come is heard first. Who has
   * rested is settled before that reading: a stall in the middle of it makes nobody rested who was not heard since.
   */
  function scheduleCheck(inMs: number): void {
    setTimeout(() => {
      const untilMs = performance.now() - quarantineMs;
      setImmediate(() => releaseSince(untilMs));
    }, inMs);
  }

  function releaseSince(untilMs: number): void {
    const over = quarantined.filter(({ idleSinceMs }) => idleSinceMs <= untilMs);
    quarantined = quarantined.filter(({ idleSinceMs }) => idleSinceMs > untilMs);
    const [next] = quarantined;
    if (next) scheduleCheck(Math.max(1, Math.ceil(next.idleSinceMs + quarantineMs - performance.now())));
    for (const one of over) onReleased(one);
  }

  return (one) => {
    if (quarantined.length === 0) scheduleCheck(quarantineMs);
    quarantined.push(one);
  };
}
