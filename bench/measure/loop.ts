/** How long one turn of a loop takes. */

/** What is looped; its value is looked at, so that the work cannot be optimised away. */
export type Once = () => unknown;

/** Turns between two looks at the clock. */
const batch = 100;

let seen: unknown;

/**
 * Loops for about so many milliseconds; awaits where there is a promise.
 *
 * @returns nanoseconds of CPU a turn, the garbage collector's included: others on the machine hardly change those
 */
export async function timeOf(once: Once, ms: number): Promise<number> {
  const isAsync = once() instanceof Promise;
  const start = performance.now();
  const before = process.cpuUsage();
  let turns = 0;
  while (performance.now() - start < ms) {
    if (isAsync) for (let turn = 0; turn < batch; turn++) seen = await once();
    else for (let turn = 0; turn < batch; turn++) seen = once();
    turns += batch;
  }
  const { user, system } = process.cpuUsage(before);
  if (seen === timeOf) throw new Error('nothing that is looped gives this');
  return ((user + system) * 1_000) / turns;
}
