/** `penstock in-doubt`: lists what is in doubt. `penstock in-doubt ID OUTCOME --reason ..`: resolves one of them. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import { type CommandOutput, refusalOutput } from './command-output.ts';

const inDoubtBody = z.array(
  z.object({
    id: z.string(),
    xRequestId: z.string(),
    operation: z.string(),
    environment: z.string(),
    tenant: z.string(),
    since: z.string(),
    why: z.string(),
  }),
);

/** Some lines for each, the oldest first. */
export async function showInDoubt(call: AdminClient): Promise<CommandOutput> {
  const answer = await call('GET', '/in-doubt');
  if (!answer.ok) return refusalOutput(answer.body);
  const requests = inDoubtBody.parse(answer.body);
  if (requests.length === 0) return { lines: ['Nothing is in doubt.'], exitCode: 0 };
  const lines = requests.flatMap(({ id, xRequestId, operation, environment, tenant, since, why }) => [
    id,
    `  ${operation} of ${tenant} in ${environment}, X-Request-ID ${xRequestId}, ${since}`,
    `  ${why}`,
  ]);
  return { lines, exitCode: 0 };
}

interface ResolveOptions {
  readonly id: string;
  /** `happened` or `did-not-happen`. */
  readonly outcome: string;
  /** What the bank calls the payment, if it has made one. */
  readonly payment?: string;
  readonly reason: string;
}

/** Says what the bank has told. */
export async function resolveInDoubt(
  call: AdminClient,
  { id, outcome, payment, reason }: ResolveOptions,
): Promise<CommandOutput> {
  const body = { outcome, reason, ...(payment !== undefined && { paymentId: payment }) };
  const answer = await call('POST', `/in-doubt/${encodeURIComponent(id)}`, body);
  if (!answer.ok) return refusalOutput(answer.body);
  const next =
    outcome === 'happened' ? 'A repeat is told so.' : 'A repeat with its X-Request-ID is sent to the bank.';
  return { lines: [`Resolved: it ${outcome.replaceAll('-', ' ')}. ${next}`], exitCode: 0 };
}
