/** `penstock explain X-REQUEST-ID`: what the running gateway remembers of a request, step by step. */

import { z } from 'zod';
import type { CallAdmin } from './admin-client.ts';
import { type Printed, refused } from './printed.ts';

const stepShape = z
  .object({ afterMs: z.number(), what: z.string() })
  .catchall(z.union([z.string(), z.number()]));

const accountsShape = z.array(
  z.object({
    at: z.string(),
    xRequestId: z.string(),
    status: z.number(),
    durationMs: z.number().nullable(),
    operation: z.string().nullable(),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    environment: z.string().nullable(),
    servedFrom: z.string().optional(),
    error: z.string().optional(),
    why: z.string().optional(),
    steps: z.array(stepShape),
  }),
);
type Account = z.output<typeof accountsShape>[number];

/** Some lines for each request with this id, the newest first. */
export async function explain(call: CallAdmin, xRequestId: string): Promise<Printed> {
  const answer = await call('GET', `/decisions/${encodeURIComponent(xRequestId)}`);
  if (!answer.ok) return refused(answer.body);
  return { lines: accountsShape.parse(answer.body).flatMap(linesOf), exitCode: 0 };
}

function linesOf(account: Account): readonly string[] {
  const { at, operation, client, tenant, environment, status, servedFrom, durationMs, error, why } = account;
  const who = client === null ? '' : ` by ${client} of ${tenant}`;
  const where = environment === null ? '' : ` in ${environment}`;
  const took = durationMs === null ? '' : `, after ${durationMs} ms`;
  const from = servedFrom === undefined ? '' : `, served from ${servedFrom}`;
  return [
    `${at}  ${operation ?? 'refused at the door'}${who}${where}`,
    ...account.steps.map(lineOf),
    `  answered ${status}${from}${error === undefined ? '' : ` ${error}`}${took}`,
    ...(why === undefined ? [] : [`  ${why}`]),
  ];
}

/** `      12.3 ms  call  attempt=1 connection=new totalMs=11.9 status=201` */
function lineOf({ afterMs, what, ...rest }: Account['steps'][number]): string {
  const details = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
  return `  ${afterMs.toFixed(1).padStart(8)} ms  ${[what.padEnd(15), ...details].join(' ').trimEnd()}`;
}
