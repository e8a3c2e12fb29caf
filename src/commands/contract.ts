/** `penstock contract report`: lists deviations from the standard. `penstock contract compare`: what would change in another environment. */

import { z } from 'zod';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';

const skipped = z.array(z.object({ reason: z.string(), count: z.number() }));
const clients = z.array(z.object({ client: z.string(), count: z.number() }));
const checked = z.object({
  mode: z.string(),
  checked: z.number(),
  checkedSince: z.string().nullable(),
  skipped,
});

const reportBody = z.object({
  environments: z.array(
    z.object({ name: z.string(), standardVersion: z.string(), requests: checked, responses: checked }),
  ),
  deviations: z.array(
    z.object({
      environment: z.string(),
      operation: z.string(),
      direction: z.string(),
      path: z.string(),
      rule: z.string(),
      level: z.string(),
      effect: z.string(),
      current: z.boolean(),
      count: z.number(),
      lastSeen: z.string(),
      xRequestId: z.string(),
      clients,
      changedAt: z.string().nullable(),
    }),
  ),
  omitted: z.number(),
});
type Report = z.output<typeof reportBody>;

/** A line for each environment, and one for each deviation, the worst first. */
export async function showReport(
  call: AdminClient,
  { environment, direction, level, days }: Options,
): Promise<CommandOutput> {
  const path = pathWithQuery('/contract', { environment, direction, level, days });
  const data = parseBody(reportBody, successBody(await call('GET', path)));
  const lines = [
    ...data.environments.flatMap(environmentLines),
    ...data.deviations.flatMap(deviationLines),
    ...(data.deviations.length === 0 ? ['No deviation is listed.'] : []),
    ...(data.omitted > 0 ? [`${data.omitted} more deviations are not listed.`] : []),
  ];
  return success(lines, data);
}

function environmentLines({
  name,
  standardVersion,
  requests,
  responses,
}: Report['environments'][number]): readonly string[] {
  return [
    `${name} (${standardVersion})`,
    `  requests: ${requests.mode}; ${describeChecked(requests)}`,
    `  answers: ${responses.mode}; ${describeChecked(responses)}`,
  ];
}

/** Which messages were checked, and that others were not: a report without deviations says nothing about them. */
function describeChecked({ checked: count, checkedSince, skipped: left }: z.output<typeof checked>): string {
  const done = checkedSince === null ? 'none checked' : `${count} checked since ${checkedSince}`;
  return [done, ...describeSkipped(left)].join('; ');
}

const describeSkipped = (left: z.output<typeof skipped>): readonly string[] =>
  left.map(({ reason, count }) => `${count} not checked (${reason})`);

/** `harmful  sandbox initiatePayment request  body/creditorName  required: refused` and who sent it. */
function deviationLines(row: Report['deviations'][number]): readonly string[] {
  const { level, environment, operation, direction, path, rule, effect, current, changedAt } = row;
  const notes = [
    ...(current ? [] : ['of an earlier contract']),
    ...(changedAt === null ? [] : [`the bank has changed, at ${changedAt}`]),
  ];
  const note = notes.length === 0 ? '' : `  (${notes.join('; ')})`;
  return [
    `${level.padEnd(8)} ${environment} ${operation} ${direction}  ${path}  ${rule}: ${effect}${note}`,
    evidenceLine(row),
  ];
}

interface Evidence {
  readonly count: number;
  readonly clients: z.output<typeof clients>;
  readonly lastSeen: string;
  readonly xRequestId: string;
}

const evidenceLine = ({ count, clients: by, lastSeen, xRequestId }: Evidence) =>
  `         ${count} times, by ${by.map((one) => `${one.client} (${one.count})`).join(', ')}; last ${lastSeen}, X-Request-ID ${xRequestId}`;

export const comparisonBody = z.object({
  from: z.string(),
  to: z.string(),
  requests: z.number(),
  since: z.string(),
  judgedSince: z.string().nullable(),
  skipped,
  complete: z.boolean(),
  differences: z.array(
    z.object({
      operation: z.string(),
      path: z.string(),
      rule: z.string(),
      level: z.string(),
      effect: z.string(),
      count: z.number(),
      clients,
      lastSeen: z.string(),
      xRequestId: z.string(),
      inBoth: z.boolean(),
      mustAcknowledge: z.boolean(),
    }),
  ),
});

interface CompareOptions extends Pick<Options, 'days'> {
  readonly between: readonly [from: string, to: string];
}

/** What the other environment would do, and what is not known. */
export async function compare(
  call: AdminClient,
  { between: [from, to], days }: CompareOptions,
): Promise<CommandOutput> {
  const path = pathWithQuery('/contract/compare', { from, to, days });
  const data = parseBody(comparisonBody, successBody(await call('GET', path)));
  return success(comparisonLines(data), data);
}

/** Missing data must not read as compatible. */
export function comparisonLines({
  from,
  to,
  requests,
  since,
  judgedSince,
  skipped: left,
  complete,
  differences,
}: z.output<typeof comparisonBody>): readonly string[] {
  if (judgedSince === null)
    return [`No request in ${from} was judged by the contract of ${to}: nothing is known.`];
  const lines = [
    `${requests} requests in ${from} were judged by the contract of ${to} since ${judgedSince}.`,
    ...(judgedSince > since ? [`Not judged before ${judgedSince}.`] : []),
    ...describeSkipped(left).map((text) => `${text}.`),
  ];
  const found = differences.flatMap((row) => [
    `${row.mustAcknowledge ? '!' : ' '} ${row.effect.padEnd(20)} ${row.operation}  ${row.path}  ${row.rule}${row.inBoth ? `  (also in ${from})` : ''}`,
    evidenceLine(row),
  ]);
  const none = complete
    ? 'No difference was found.'
    : 'No difference was found in the requests that were judged.';
  return [...lines, ...(found.length === 0 ? [none] : found)];
}
