/**
 * Runs callbacks in batches: each stage of the pipeline runs for all requests of a batch before the next stage begins.
 *
 * Requests that run one after the other pass the whole pipeline each, and evict the code of its beginning from the
 * processor's caches. That takes twice the time (docs/architecture/adr/0063-batch-scheduler.md).
 */

/** Runs the callback with the current batch, at the end of this turn of the event loop or, after a full batch, a later one. */
export type BatchScheduler = (run: () => void) => void;

/** Further callbacks run in the next turn of the event loop, in which new connections are accepted first. */
const maxBatchSize = 32;

export function createBatchScheduler(): BatchScheduler {
  let waiting: (() => void)[] = [];

  function runBatch(): void {
    const batch = waiting.slice(0, maxBatchSize);
    waiting = waiting.slice(maxBatchSize);
    if (waiting.length > 0) setImmediate(runBatch);
    for (const run of batch) run();
  }

  return (run) => {
    if (waiting.length === 0) setImmediate(runBatch);
    waiting.push(run);
  };
}
