/** `penstock in-doubt`: lists requests in doubt. `penstock in-doubt ID OUTCOME`: resolves one, or `all` that match a filter. */

import { z } from 'zod';
import type { InDoubtFilter } from '../admin/resolve-several.ts';
import type { AdminClient } from './admin-client.ts';
import { type CommandOutput, refusalOutput } from './command-output.ts';

const inDoubtRequest = z.object({
  id: z.string(),
  xRequestId: z.string(),
  operation: z.string(),
  environment: z.string(),
  tenant: z.string(),
  since: z.string(),
  why: z.string(),
});
const inDoubtBody = z.array(inDoubtRequest);

type InDoubtRequest = z.output<typeof inDoubtRequest>;

/** Several lines per request, oldest first. */
export async function showInDoubt(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/in-doubt');
  if (!response.ok) return refusalOutput(response.body);
  const requests = inDoubtBody.parse(response.body);
  if (requests.length === 0) return { lines: ['Nothing is in doubt.'], exitCode: 0 };
  return { lines: requests.flatMap(linesOf), exitCode: 0 };
}

const linesOf = ({ id, xRequestId, operation, environment, tenant, since, why }: InDoubtRequest) => [
  id,
  `  ${operation} of ${tenant} in ${environment}, X-Request-ID ${xRequestId}, ${since}`,
  `  ${why}`,
];

const previewBody = z.object({ selection: z.string(), requests: inDoubtBody });

/** The requests that match a filter, and how to resolve exactly these. */
export async function previewInDoubt(call: AdminClient, options: InDoubtFilter): Promise<CommandOutput> {
  const filter = filterOf(options);
  const response = await call('GET', `/in-doubt/preview?${new URLSearchParams(filter)}`);
  if (!response.ok) return refusalOutput(response.body);
  const { selection, requests } = previewBody.parse(response.body);
  if (requests.length === 0) return { lines: ['Nothing that matches is in doubt.'], exitCode: 0 };
  const next = `To resolve all ${requests.length}: penstock in-doubt all OUTCOME --selection ${selection} --reason TEXT, and the same filter.`;
  return { lines: [...requests.flatMap(linesOf), next], exitCode: 0 };
}

interface ResolveSeveralOptions extends InDoubtFilter {
  readonly selection: string;
  readonly outcome: string;
  readonly reason: string;
  readonly confirm?: string | undefined;
}

const severalBody = z.object({ resolved: z.number(), early: z.number(), gone: z.number() });

/** Fails if requests stay in doubt. */
export async function resolveSeveralInDoubt(
  call: AdminClient,
  { selection, outcome, reason, confirm, ...options }: ResolveSeveralOptions,
): Promise<CommandOutput> {
  const body = {
    ...filterOf(options),
    selection,
    outcome,
    reason,
    ...(confirm !== undefined && { confirm }),
  };
  const response = await call('POST', '/in-doubt', body);
  if (!response.ok) return refusalOutput(response.body);
  const { resolved, early, gone } = severalBody.parse(response.body);
  const lines = [`Resolved: ${resolved}. Resolved by others in the meantime: ${gone}.`];
  if (early > 0)
    lines.push(`Still in doubt: ${early}, because the bank may still act on them. Try again later.`);
  return { lines, exitCode: early > 0 ? 1 : 0 };
}

function filterOf({ environment, tenant, from, to, why }: InDoubtFilter): Record<string, string> {
  const all = Object.entries({ environment, tenant, from, to, why });
  return Object.fromEntries(all.filter((one): one is [string, string] => one[1] !== undefined));
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
