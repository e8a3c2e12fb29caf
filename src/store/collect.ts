/** Executes what is asked for in one turn of the event loop together. */

export interface BatchLimits {
  /** While so many batches run, further requests wait, and form the next batch: batches grow under load. */
  readonly maxRunning: number;
  /** The longest batch. */
  readonly maxBatch: number;
}

const defaultLimits: BatchLimits = { maxRunning: 2, maxBatch: 100 };

interface Waiting<Input, Result> {
  readonly input: Input;
  readonly promise: PromiseWithResolvers<Result>;
}

/**
 * @param execute for several inputs, with the results in their order; if it rejects, all of them fail
 * @returns a function for one input
 */
export function collect<Input, Result>(
  execute: (inputs: readonly Input[]) => Promise<readonly Result[]>,
  { maxRunning, maxBatch }: BatchLimits = defaultLimits,
): (input: Input) => Promise<Result> {
  let waiting: Waiting<Input, Result>[] = [];
  let running = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || running >= maxRunning) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void run();
    });
  }

  async function run(): Promise<void> {
    const batch = waiting.slice(0, maxBatch);
    waiting = waiting.slice(maxBatch);
    running += 1;
    schedule();
    try {
      const results = await execute(batch.map(({ input }) => input));
      for (const [index, { promise }] of batch.entries()) promise.resolve(results[index] as Result); // one for each input
    } catch (thrown) {
      for (const { promise } of batch) promise.reject(thrown);
    } finally {
      running -= 1;
      schedule();
    }
  }

  return (input) => {
    const promise = Promise.withResolvers<Result>();
    waiting.push({ input, promise });
    schedule();
    return promise.promise;
  };
}
