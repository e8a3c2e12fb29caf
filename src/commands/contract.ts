/** `penstock contract report` lists deviations from the standard; `penstock contract compare` lists the differences between two environments. */

import { z } from 'zod';
import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

const skippedShape = z.array(z.object({ reason: z.string(), count: z.number() }));
const clientsShape = z.array(z.object({ client: z.string(), count: z.number() }));
const checkedShape = z.object({
  mode: z.string(),
  checked: z.number(),
  checkedSince: z.string().nullable(),
  skipped: skippedShape,
});

const reportBody = z.object({
  environments: z.array(
    z.object({
      name: z.string(),
      standardVersion: z.string(),
      requests: checkedShape,
      responses: checkedShape,
    }),
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
      clients: clientsShape,
      changedAt: z.string().nullable(),
    }),
  ),
  omitted: z.number(),
});
type Report = z.output<typeof reportBody>;

/** Lists the environments, then the deviations, the worst first. Lines have at most 80 columns, except with long names. */
export async function showReport(
  call: AdminClient,
  { environment, direction, level, days }: Options,
): Promise<CommandOutput> {
  const path = pathWithQuery('/contract', { environment, direction, level, days });
  const data = parseBody(reportBody, successBody(await call('GET', path)));
  const { environments, deviations, omitted } = data;
  const lines = [
    ...environments.flatMap(environmentLines),
    ...deviations.flatMap((row) => ['', ...deviationLines(row)]),
    '',
    ...(omitted > 0 ? [`${omitted} more deviations are not listed: use --environment or --level.`] : []),
    deviations.length === 0
      ? 'No deviation is listed.'
      : 'Show a message and its request: penstock explain X-REQUEST-ID',
  ];
  return success(lines, data);
}

const environmentLines = ({ name, standardVersion, requests, responses }: Report['environments'][number]) => [
  `${name} (${standardVersion})`,
  ...checkedLines('requests', requests),
  ...checkedLines('answers', responses),
];

/** How many messages were checked, and how many were not: the report says nothing about the latter. */
function checkedLines(
  what: string,
  { mode, checked, checkedSince, skipped }: z.output<typeof checkedShape>,
): readonly string[] {
  const done = checkedSince === null ? 'none checked' : `${checked} checked since ${shortTime(checkedSince)}`;
  return [
    `  ${what.padEnd(9)} ${mode === 'off' ? 'off' : `${mode}: ${done}`}`,
    ...skipped.map((reason) => `${''.padEnd(12)}${describeSkipped(reason)}`),
  ];
}

const describeSkipped = ({ reason, count }: z.output<typeof skippedShape>[number]) =>
  `${count} not checked (${reason})`;

function deviationLines(row: Report['deviations'][number]): readonly string[] {
  const { level, environment, operation, direction, path, rule, effect, current, changedAt } = row;
  const message = direction === 'request' ? operation : `answer to ${operation}`;
  return [
    `${level.padEnd(8)} ${effect}: ${message} in ${environment}`,
    `  ${path}  ${rule}`,
    ...(current ? [] : ['  of an earlier contract: counting has begun again since']),
    ...(changedAt === null ? [] : [`  the bank has changed, at ${shortTime(changedAt)}`]),
    ...evidenceLines(row),
  ];
}

interface Evidence {
  readonly count: number;
  readonly clients: z.output<typeof clientsShape>;
  readonly lastSeen: string;
  readonly xRequestId: string;
}

const evidenceLines = ({ count, clients, lastSeen, xRequestId }: Evidence) => [
  `  ${count} ${count === 1 ? 'time' : 'times'} by ${describeClients(clients)}`,
  `  last ${shortTime(lastSeen)}  X-Request-ID ${xRequestId}`,
];

/** How many clients a line names; `--json` names all. */
const maxClients = 3;

function describeClients(clients: Evidence['clients']): string {
  const named = clients.slice(0, maxClients).map((one) => `${one.client} (${one.count})`);
  const rest = clients.length - named.length;
  return [...named, ...(rest > 0 ? [`${rest} more`] : [])].join(', ');
}

/** Without fractions of a second. */
const shortTime = (time: string) => time.replace(/\.\d+Z$/, 'Z');

export const comparisonBody = z.object({
  from: z.string(),
  to: z.string(),
  requests: z.number(),
  since: z.string(),
  judgedSince: z.string().nullable(),
  skipped: skippedShape,
  complete: z.boolean(),
  differences: z.array(
    z.object({
      operation: z.string(),
      path: z.string(),
      rule: z.string(),
      level: z.string(),
      effect: z.string(),
      count: z.number(),
      clients: clientsShape,
      lastSeen: z.string(),
      xRequestId: z.string(),
      inBoth: z.boolean(),
      mustAcknowledge: z.boolean(),
    }),
  ),
});

interface CompareOptions extends Pick<Options, 'days' | 'strict'> {
  readonly between: readonly [from: string, to: string];
}

/** Lists what the other environment would do. With `strict`, exits with 1 if a switch must acknowledge a difference, or nothing is known. */
export async function compare(
  call: AdminClient,
  { between: [from, to], days, strict = false }: CompareOptions,
): Promise<CommandOutput> {
  const path = pathWithQuery('/contract/compare', { from, to, days });
  const data = parseBody(comparisonBody, successBody(await call('GET', path)));
  const isReady = data.judgedSince !== null && !mustAcknowledge(data);
  const exitCode = strict && !isReady ? exitCodes.refused : exitCodes.ok;
  return { ...success([...comparisonLines(data), ...acknowledgeLines(data)], data), exitCode };
}

type Comparison = z.output<typeof comparisonBody>;

const mustAcknowledge = ({ differences }: Comparison) => differences.some((row) => row.mustAcknowledge);

/** States what was not judged, so that nobody takes it for compatible. */
export function comparisonLines(comparison: Comparison): readonly string[] {
  const { from, to, requests, since, judgedSince, skipped, complete, differences } = comparison;
  if (judgedSince === null)
    return [`No request in ${from} was judged by the contract of ${to}: nothing is known.`];
  const were = requests === 1 ? 'request in' : 'requests in';
  const none = complete
    ? 'No difference was found.'
    : 'No difference was found in the requests that were judged.';
  return [
    `${requests} ${were} ${from} judged by the contract of ${to}`,
    ...(judgedSince > since ? [`  not judged before ${shortTime(judgedSince)}`] : []),
    ...skipped.map((reason) => `  ${describeSkipped(reason)}`),
    ...(differences.length === 0 ? [none] : differences.flatMap((row) => differenceLines(row, from))),
  ];
}

/** How to acknowledge the differences; no line if that is not necessary. */
export const acknowledgeLines = (comparison: Comparison): readonly string[] =>
  mustAcknowledge(comparison)
    ? [`A switch to ${comparison.to} must acknowledge those with !: --acknowledge-differences`]
    : [];

const differenceLines = (row: Comparison['differences'][number], from: string) => [
  `${row.mustAcknowledge ? '!' : '-'} ${row.effect}: ${row.operation}${row.inBoth ? ` (also in ${from})` : ''}`,
  `  ${row.path}  ${row.rule}`,
  ...evidenceLines(row),
];
