/**
 * Holds a connection back for a moment before it is reused: bytes that the bank sends after its response would otherwise be
 * taken for the response to the next request, possibly of another tenant.
 */

interface QuarantinedConnection {
  /** Start of its quarantine, on the clock of `performance.now()`. */
  readonly idleSinceMs: number;
}

/** How long a connection must stay silent. */
const quarantineMs = 5;

/** @param onReleased called for each connection after its quarantine, in order @returns starts a quarantine */
export function createIdleQuarantine<Connection extends QuarantinedConnection>(
  onReleased: (connection: Connection) => void,
): (connection: Connection) => void {
  /** One timer serves all of them. */
  let quarantined: Connection[] = [];

  /**
   * After a stall of the process, timers run before sockets are read: the release waits until the sockets were read. It
   * affects only connections whose quarantine was over before that: a stall during the reading releases no connection
   * that was not read since.
   */
  function scheduleRelease(inMs: number): void {
    setTimeout(() => {
      const releaseUntilMs = performance.now() - quarantineMs;
      setImmediate(() => release(releaseUntilMs));
    }, inMs);
  }

  function release(untilMs: number): void {
    const released = quarantined.filter(({ idleSinceMs }) => idleSinceMs <= untilMs);
    quarantined = quarantined.filter(({ idleSinceMs }) => idleSinceMs > untilMs);
    const [next] = quarantined;
    if (next) scheduleRelease(Math.max(1, Math.ceil(next.idleSinceMs + quarantineMs - performance.now())));
    for (const connection of released) onReleased(connection);
  }

  return (connection) => {
    if (quarantined.length === 0) scheduleRelease(quarantineMs);
    quarantined.push(connection);
  };
}
