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
    tenants: z.array(
      z.object({
        tenant: z.string(),
        state: z.string(),
        until: z.string().nullable(),
        reason: z.string().nullable(),
      }),
    ),
  }),
);

/** One line per lane, with its hold and the reason for its state, and one per tenant whose state is another one. */
export async function showCircuits(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/circuits');
  if (!response.ok)
    return { lines: [`The circuits cannot be read: ${JSON.stringify(response.body)}`], exitCode: 1 };
  const lines = circuitsBody.parse(response.body).flatMap((circuit) => {
    const { environment, lane, state, hold, tenants } = circuit;
    const place = `${environment.padEnd(12)} ${lane.padEnd(7)}`;
    const held = hold === null ? '' : `held ${hold} `;
    return [
      `${place} ${state.padEnd(10)} ${held}${explain(circuit)}`.trimEnd(),
      ...tenants
        .filter((each) => each.state !== state)
        .map((each) => `${place} ${each.state.padEnd(10)} for ${each.tenant} ${explain(each)}`.trimEnd()),
    ];
  });
  return { lines, exitCode: 0 };
}

const explain = ({ until, reason }: { readonly until: string | null; readonly reason: string | null }) =>
  `${until === null ? '' : `until ${until} `}${reason ?? ''}`;
