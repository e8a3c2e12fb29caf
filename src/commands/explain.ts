/** `penstock explain X-REQUEST-ID`: shows what the running gateway did with a request, on any instance, step by step. */

import { z } from 'zod';
import { explanationOf } from '../telemetry/explain-request.ts';
import type { AdminClient } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type CommandOutput, success } from './command-output.ts';

const stepBody = z
  .object({ afterMs: z.number(), what: z.string() })
  .catchall(z.union([z.string(), z.number()]));

const reportsBody = z.array(
  z.object({
    at: z.string(),
    xRequestId: z.string(),
    product: z.string().nullable(),
    paymentId: z.string().nullable(),
    status: z.number().nullable(),
    bankError: z.string().optional(),
    durationMs: z.number().nullable(),
    operation: z.string().nullable(),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    environment: z.string().nullable(),
    servedFrom: z.string().optional(),
    error: z.string().optional(),
    why: z.string().optional(),
    steps: z.array(stepBody),
    instance: z.string(),
  }),
);
type ReportBody = z.output<typeof reportsBody>[number];

/** Several lines for each request with this id, newest first. */
export async function explain(call: AdminClient, xRequestId: string): Promise<CommandOutput> {
  const data = successBody(await call('GET', `/decisions/${encodeURIComponent(xRequestId)}`));
  return success(parseBody(reportsBody, data).flatMap(formatReport), data);
}

function formatReport(report: ReportBody): readonly string[] {
  const { at, operation, product, paymentId, client, tenant, environment, status, servedFrom, ...rest } =
    report;
  const { durationMs, bankError, error, instance } = rest;
  const who = client === null ? '' : ` by ${client} of ${tenant}`;
  const where = environment === null ? '' : ` in ${environment}`;
  const duration = durationMs === null ? '' : `, after ${durationMs} ms`;
  const from = servedFrom === undefined ? '' : `, served from ${servedFrom}`;
  const code = error ?? bankError;
  const explanation = explanationOf(report);
  return [
    `${at}  ${operation ?? 'refused before its operation was known'}${who}${where} on ${instance}`,
    ...(product === null ? [] : [`  ${product}${paymentId === null ? '' : ` ${paymentId}`}`]),
    ...formatSteps(report.steps),
    status === null
      ? `  still running${duration}`
      : `  answered ${status}${code === undefined ? '' : ` ${code}`}${from}${duration}`,
    ...(explanation === null ? [] : [`  ${explanation}`]),
  ];
}

/** A line for each step, in columns: `      12.3 ms  call  attempt=1 connection=new totalMs=11.9 status=201`. */
function formatSteps(steps: ReportBody['steps']): readonly string[] {
  const width = Math.max(...steps.map(({ what }) => what.length));
  return steps.map(({ afterMs, what, ...rest }) => {
    const details = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
    return `  ${afterMs.toFixed(1).padStart(8)} ms  ${[what.padEnd(width), ...details].join(' ').trimEnd()}`;
  });
}
