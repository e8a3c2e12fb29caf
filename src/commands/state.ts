/** `penstock state`: shows whether the shared state has lost data. `penstock state accept-loss`: accepts that it has. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

const stateBody = z.object({
  status: z.string(),
  since: z.string().nullable(),
  cause: z.string().nullable(),
  missing: z.array(z.object({ instance: z.string(), lastSeen: z.string().nullable() })),
});

/** Lines: the cause of the refusal, and each missing instance. The exit code is 1 while new payments are refused. */
export async function showState(call: AdminClient): Promise<CommandOutput> {
  return describeState(successBody(await call('GET', '/state')));
}

/** Accepts new payments although the state may have lost earlier ones. */
export async function acceptLoss(call: AdminClient, reason: string): Promise<CommandOutput> {
  return describeState(successBody(await call('POST', '/state/accept-loss', { reason })));
}

function describeState(body: unknown): CommandOutput {
  const { status, since, cause, missing } = parseBody(stateBody, body);
  if (status === 'ok') return success(['New payments are accepted.'], body);
  const lines = [
    `New payments have been refused since ${since}. ${cause}`,
    ...missing.map(
      ({ instance, lastSeen }) =>
        `  missing instance ${instance}, last seen ${lastSeen ?? 'by another instance only'}`,
    ),
  ];
  return { lines, data: body, exitCode: exitCodes.refused };
}
