/** `penstock circuits`: shows the circuit of each environment and lane. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import type { CommandOutput } from './command-output.ts';

const circuitsBody = z.array(
  z.object({
    environment: z.string(),
    lane: z.string(),
    state: z.string(),
    hold: z.string().nullable(),
    until: z.string().nullable(),
    reason: z.string().nullable(),
  }),
);

/** One line per circuit, with its hold and the reason for its state. */
export async function showCircuits(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/circuits');
  if (!response.ok)
    return { lines: [`The circuits cannot be read: ${JSON.stringify(response.body)}`], exitCode: 1 };
  const lines = circuitsBody.parse(response.body).map(({ environment, lane, state, hold, until, reason }) => {
    const held = hold === null ? '' : `held ${hold} `;
    const when = until === null ? '' : `until ${until} `;
    return `${environment.padEnd(12)} ${lane.padEnd(7)} ${state.padEnd(10)} ${held}${when}${reason ?? ''}`.trimEnd();
  });
  return { lines, exitCode: 0 };
}
