/**
 * What would another environment do with the requests of this one? Every request is also checked against the contracts of the other
 * environments, so the report has the answer, for the time in which it was checked. Missing data never reads as compatible.
 */

import type { ContractComparison } from '../request/contract-comparison.ts';
import type { GuardedEnvironment, GuardedEnvironments } from './guarded-environments.ts';
import type { ContractReport, ReportedDeviation, ReportedMessages, ReportReader } from './read-report.ts';
import { dayMs } from './report-days.ts';

/** Effects that an operator must know before payments go to another environment. */
const severe: ReadonlySet<string> = new Set([
  'refused',
  'executed-at-once',
  'executed-differently',
  'not-judged',
]);

/** @returns `undefined` if the configuration does not have both environments */
export function compareContracts(
  report: ContractReport,
  { all }: Pick<GuardedEnvironments, 'all'>,
  fromName: string,
  toName: string,
): ContractComparison | undefined {
  const from = all.find(({ name }) => name === fromName);
  const to = all.find(({ name }) => name === toName);
  if (!from || !to) return undefined;
  const requests = report.messages.filter((row) => isChecked(row, from, to));
  const found = report.deviations.filter((row) => isChecked(row, from, to) && row.level !== 'usual');
  const isInBoth = inBothOf(report, from);
  const judgedSinceMs = requests.length > 0 ? Math.min(...requests.map(({ firstMs }) => firstMs)) : undefined;
  const skipped = report.skipped
    .filter(({ environment, direction }) => environment === from.name && direction === 'request')
    .map(({ reason, count }) => ({ reason, count }));
  return {
    from: from.name,
    to: to.name,
    requests: requests.reduce((sum, { count }) => sum + count, 0),
    sinceMs: report.fromMs,
    judgedSinceMs,
    skipped,
    isComplete:
      from.requests !== 'off' &&
      judgedSinceMs !== undefined &&
      judgedSinceMs <= report.fromMs &&
      skipped.length === 0,
    differences: mergeOwn(found.map((row) => ({ ...row, isInBoth: isInBoth(row) })))
      .map((row) => ({
        ...row,
        mustAcknowledge: row.level === 'harmful' && severe.has(row.effect) && !isNoDifference(row),
      }))
      .toSorted((one, other) => Number(other.mustAcknowledge) - Number(one.mustAcknowledge)),
  };
}

/**
 * A request that both environments refuse has never worked, and a switch changes nothing for it. What cannot be judged may be
 * another thing in each environment.
 */
const isNoDifference = ({ isInBoth, effect }: ComparedDeviation) => isInBoth && effect !== 'not-judged';

/**
 * Whether deviations are the same in the environment that the requests were sent to. Harmful ones are compared for each request when
 * it is checked: that the other contract has the same rule says nothing about the same request. The mark names the own contract, so
 * that it does not count after that has changed.
 */
function inBothOf(report: ContractReport, from: GuardedEnvironment): (row: ReportedDeviation) => boolean {
  const own = new Set(report.deviations.filter((row) => isChecked(row, from, from)).map(keyOf));
  return (row) => {
    if (row.hash === from.own.hash || row.alsoRefusedBy === from.own.hash) return true;
    return row.level !== 'harmful' && own.has(keyOf(row));
  };
}

interface ComparedDeviation extends ReportedDeviation {
  readonly isInBoth: boolean;
}

/** If both environments have the same contract, the requests were checked once. */
const isChecked = (
  { environment, direction, hash }: Pick<ReportedMessages, 'environment' | 'direction' | 'hash'>,
  from: GuardedEnvironment,
  against: GuardedEnvironment,
) => environment === from.name && direction === 'request' && hash === against.own.hash;

const keyOf = ({ operation, path, rule }: ReportedDeviation) => `${operation} ${path} ${rule}`;

/** A contract that became the environment's own by a reload has rows of both kinds. */
function mergeOwn(rows: readonly ComparedDeviation[]): readonly ComparedDeviation[] {
  const merged = new Map<string, ComparedDeviation>();
  for (const row of rows) {
    const key = `${keyOf(row)} ${row.level} ${row.effect} ${row.isInBoth}`;
    const known = merged.get(key);
    if (!known) {
      merged.set(key, row);
      continue;
    }
    const [last, other] = row.lastMs >= known.lastMs ? [row, known] : [known, row];
    const clients = new Map(last.clients.map(({ client, count }) => [client, count]));
    for (const { client, count } of other.clients) clients.set(client, (clients.get(client) ?? 0) + count);
    merged.set(key, {
      ...last,
      count: row.count + known.count,
      firstMs: Math.min(row.firstMs, known.firstMs),
      clients: Array.from(clients, ([client, count]) => ({ client, count })),
    });
  }
  return [...merged.values()];
}

/** How many days a switch looks back. */
const defaultDays = 7;

/** Compares two environments of the configuration in effect by the report of the last days; today is one of them. */
export function createCompareContracts(
  report: ReportReader,
  guarded: () => Pick<GuardedEnvironments, 'all'>,
): (from: string, to: string, days?: number) => Promise<ContractComparison | undefined> {
  return async (from, to, days = defaultDays) =>
    compareContracts(await report.read(Date.now() - (days - 1) * dayMs), guarded(), from, to);
}
