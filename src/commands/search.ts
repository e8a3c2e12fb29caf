/** `penstock search`: lists requests of all instances that match a filter. */

import { z } from 'zod';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';

const searchBody = z.object({
  requests: z.array(
    z.object({
      at: z.string(),
      xRequestId: z.string(),
      operation: z.string().nullable(),
      client: z.string().nullable(),
      tenant: z.string().nullable(),
      environment: z.string().nullable(),
      status: z.number().nullable(),
      bankError: z.string().optional(),
      error: z.string().optional(),
      durationMs: z.number().nullable(),
      instance: z.string(),
    }),
  ),
  searchedFrom: z.string(),
  complete: z.boolean(),
  notStored: z.number(),
});
type FoundRequest = z.output<typeof searchBody>['requests'][number];

/** One line for each request, newest first. */
export async function search(
  call: AdminClient,
  { payment, tenant, client, operation, environment, product, status, outcome, ...others }: Options,
): Promise<CommandOutput> {
  const { bankError, error, servedFrom, minDuration, from, to, limit } = others;
  const path = pathWithQuery('/search', {
    ...{ payment, tenant, client, operation, environment, product, status, outcome },
    ...{ bankError, error, servedFrom, minDuration, from, to, limit },
  });
  const data = parseBody(searchBody, successBody(await call('GET', path)));
  const { requests, searchedFrom, complete, notStored } = data;
  const lines = requests.length === 0 ? ['No request was found.'] : requests.map(lineOf);
  if (!complete) lines.push(`Searched since ${searchedFrom}. To continue: --to ${searchedFrom}`);
  if (notStored > 0)
    lines.push(
      `Of ${notStored} requests in this time, no record was stored: raise requests.maxStoredPerTenant, or reduce requests.keepFor.`,
    );
  return success(lines, data);
}

/** `2026-01-31T12:00:00.000Z  503 CIRCUIT_OPEN  initiatePayment by shop of merchants in sandbox  12 ms  <id>  <instance>` */
function lineOf({
  at,
  status,
  bankError,
  error,
  operation,
  client,
  tenant,
  environment,
  ...rest
}: FoundRequest): string {
  const { durationMs, xRequestId, instance } = rest;
  const code = error ?? bankError;
  const result = `${status ?? 'running'}${code === undefined ? '' : ` ${code}`}`;
  const who = client === null ? '' : ` by ${client} of ${tenant}`;
  const where = environment === null ? '' : ` in ${environment}`;
  const duration = durationMs === null ? '' : `  ${durationMs} ms`;
  return `${at}  ${result}  ${operation ?? 'refused'}${who}${where}${duration}  ${xRequestId}  ${instance}`;
}
