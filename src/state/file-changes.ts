/** Changes that come at the same time go to the disk together: each wait for the disk holds up the whole process. */

/** Makes a change soon. @returns its answer, once it is on the disk; rejects if none of those that went together is */
export type Changes = <Answer>(change: () => Answer) => Promise<Answer>;

interface Waiting {
  /** Makes the change. @returns tells its answer */
  readonly make: () => () => void;
  readonly fail: (error: unknown) => void;
}

/** @param transact runs all or nothing, and comes back when it is on the disk */
export function createChanges(transact: (work: () => void) => void): Changes {
  let waiting: Waiting[] = [];

  function makeAll(): void {
    const all = waiting;
    waiting = [];
    let tell: readonly (() => void)[] = [];
    try {
      transact(() => {
        tell = all.map(({ make }) => make());
      });
    } catch (error) {
      for (const { fail } of all) fail(error);
      return;
    }
    for (const answer of tell) answer();
  }

  return (change) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof change>>();
    const make = () => {
      const answer = change();
      return () => resolve(answer);
    };
    if (waiting.length === 0) setImmediate(makeAll);
    waiting.push({ make, fail: reject });
    return promise;
  };
}
