/** What the measurements of outages share: their rows, and a load of equal requests. */

import type { Agent } from 'node:http';
import type { Reply } from '../../test/kit/call.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { percentile } from '../measure/statistics.ts';

/** What was measured, the value, and the goal if there is one. */
export type Row = readonly [what: string, measured: string, goal: string];

/** @returns the rows of a table */
export type Measure = (life: TestScope) => Promise<readonly Row[]>;

/** Sends that many requests one after the other. @returns how long each took, in milliseconds */
export async function timesOf(
  count: number,
  ask: (number: number) => Promise<Pick<Reply, 'status'>>,
): Promise<readonly number[]> {
  const times: number[] = [];
  for (let number = 0; number < count; number++) {
    const beganMs = performance.now();
    await ask(number);
    times.push(performance.now() - beganMs);
  }
  return times;
}

/** Milliseconds until the promise is fulfilled. */
export async function timeOf(promise: Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await promise;
  return performance.now() - beganMs;
}

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

/** The median and a percentile near the top, as text. @param part of the percentile, from 0 to 1 */
export const spreadOf = (times: readonly number[], part: number): string =>
  `${ms(percentile(times, 0.5))}, p${part * 100} ${ms(percentile(times, part))}`;

/** Closes the agent's connections at the end. */
export function closedWith(life: TestScope, agent: Agent): Agent {
  life.after(() => agent.destroy());
  return agent;
}
