/** `penstock in-doubt`: lists the requests in doubt. `penstock in-doubt ID OUTCOME --reason ..`: resolves one of them. */

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

/** Several lines per request, oldest first. */
export async function showInDoubt(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/in-doubt');
  if (!response.ok) return refusalOutput(response.body);
  const requests = inDoubtBody.parse(response.body);
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
  /** The bank's id of the payment, if the bank created one. */
  readonly payment?: string;
  readonly reason: string;
}

/** Records what the bank says about a request in doubt. */
export async function resolveInDoubt(
  call: AdminClient,
  { id, outcome, payment, reason }: ResolveOptions,
): Promise<CommandOutput> {
  const body = { outcome, reason, ...(payment !== undefined && { paymentId: payment }) };
  const response = await call('POST', `/in-doubt/${encodeURIComponent(id)}`, body);
  if (!response.ok) return refusalOutput(response.body);
  const next =
    outcome === 'happened'
      ? 'A repeated request is answered with that.'
      : 'A repeat with its X-Request-ID is sent to the bank.';
  return { lines: [`Resolved: it ${outcome.replaceAll('-', ' ')}. ${next}`], exitCode: 0 };
}
