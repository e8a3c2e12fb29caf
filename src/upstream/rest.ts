/**
 * Lets connections rest before they are used again: what a bank sends behind its answer would else be taken for the answer to
 * the next request, another tenant's perhaps.
 */

interface Resting {
  /** When its rest began, on the clock of `performance.now()`. */
  readonly unusedSinceMs: number;
}

/** How long a connection must stay silent after an answer. Milliseconds. */
const restMs = 5;

/** @param rested told of each that has rested, in the order in which they began @returns begins a rest */
export function createRest<One extends Resting>(rested: (one: One) => void): (one: One) => void {
  /** While there are any, one timer runs for all. */
  let resting: One[] = [];

  /**
   * After a stall of our own process the timers run before the sockets are read: what has come is heard first. Who has
   * rested is settled before that reading: a stall in the middle of it makes nobody rested who was not heard since.
   */
  function wake(inMs: number): void {
    setTimeout(() => {
      const untilMs = performance.now() - restMs;
      setImmediate(() => endRests(untilMs));
    }, inMs);
  }

  function endRests(untilMs: number): void {
    const over = resting.filter(({ unusedSinceMs }) => unusedSinceMs <= untilMs);
    resting = resting.filter(({ unusedSinceMs }) => unusedSinceMs > untilMs);
    const [next] = resting;
    if (next) wake(Math.max(1, Math.ceil(next.unusedSinceMs + restMs - performance.now())));
    for (const one of over) rested(one);
  }

  return (one) => {
    if (resting.length === 0) wake(restMs);
    resting.push(one);
  };
}
