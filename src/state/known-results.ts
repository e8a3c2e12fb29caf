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
