/**
 * Shared promises for results that are known at once. A state in memory returns them; callers that recognise them continue without
 * waiting, because each wait would create a promise and a reaction.
 */

export const yes = Promise.resolve(true);
export const no = Promise.resolve(false);
export const done = Promise.resolve();

/** The value of `yes` or `no`; `undefined` for every other promise. */
export function knownResult(result: Promise<boolean>): boolean | undefined {
  if (result === yes) return true;
  return result === no ? false : undefined;
}

/** Calls `next` with the result: synchronously if that is known. Calls `fail` if `result` rejects, not if `next` fails. */
export function whenKnown<Next>(
  result: Promise<boolean>,
  next: (value: boolean) => Next | Promise<Next>,
  fail?: (thrown: unknown) => Next | Promise<Next>,
): Next | Promise<Next> {
  const known = knownResult(result);
  return known === undefined ? result.then(next, fail) : next(known);
}
