/**
 * Lets requests that come together go on together: one stage of the line runs for all of them before the next one begins.
 *
 * One after the other, each would run the whole line, and find the processor's caches full of the end of the line before:
 * that takes twice the time (docs/architecture/adr/0063-batch-scheduler.md).
 */

/** Does this when all that has come meanwhile is there: still in this turn of the event loop, unless much has come. */
export type BatchScheduler = (goOn: () => void) => void;

/** How many go on together; the rest takes the next turn, before which new connections are taken in. */
const maxBatchSize = 32;

/** Only those that are given to the same one go on together. */
export function createBatchScheduler(): BatchScheduler {
  let waiting: (() => void)[] = [];

  function runBatch(): void {
    const together = waiting.slice(0, maxBatchSize);
    waiting = waiting.slice(maxBatchSize);
    if (waiting.length > 0) setImmediate(runBatch);
    for (const one of together) one();
  }

  return (one) => {
    if (waiting.length === 0) setImmediate(runBatch);
    waiting.push(one);
  };
}
