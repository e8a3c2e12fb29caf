/** Measures the CPU time of one iteration of a loop. */

/** The loop's body. Its result is used, so that the compiler cannot remove the work. */
export type LoopBody = () => unknown;

/** Iterations between two readings of the clock. */
const iterationsPerBatch = 100;

let lastResult: unknown;

/**
 * Runs the body for about `ms` milliseconds; awaits its result if it is a promise.
 *
 * @returns CPU nanoseconds per iteration, including the garbage collector; other processes hardly affect them
 */
export async function cpuNsPerIteration(once: LoopBody, ms: number): Promise<number> {
  const isAsync = once() instanceof Promise;
  const start = performance.now();
  const before = process.cpuUsage();
  let iterations = 0;
  while (performance.now() - start < ms) {
    if (isAsync) for (let at = 0; at < iterationsPerBatch; at++) lastResult = await once();
    else for (let at = 0; at < iterationsPerBatch; at++) lastResult = once();
    iterations += iterationsPerBatch;
  }
  const { user, system } = process.cpuUsage(before);
  if (lastResult === cpuNsPerIteration) throw new Error('unreachable: no body returns this function');
  return ((user + system) * 1_000) / iterations;
}
