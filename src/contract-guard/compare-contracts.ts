/**
 * Compares two environments by the report: requests are also checked against the contracts of the other environments. Requests that
 * were not checked never count as compatible.
 */

import type { ContractComparison } from '../request/contract-comparison.ts';
import { dayMs } from '../store/contract-report.ts';
import type { GuardedEnvironment, GuardedEnvironments } from './guarded-environments.ts';
import type { ContractReport, ReportedDeviation, ReportedMessages, ReportReader } from './read-report.ts';

/** Effects that an operator must acknowledge before a switch. */
const effectsToAcknowledge: ReadonlySet<string> = new Set([
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
  const isInBoth = createIsInBoth(report, from);
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
    differences: mergeRows(found.map((row) => ({ ...row, isInBoth: isInBoth(row) })))
      .map((row) => ({
        ...row,
        mustAcknowledge:
          row.level === 'harmful' && effectsToAcknowledge.has(row.effect) && !isNoDifference(row),
      }))
      .toSorted((one, other) => Number(other.mustAcknowledge) - Number(one.mustAcknowledge)),
  };
}

/**
 * A request that both environments refuse has never worked, so a switch changes nothing for it. The environments may still treat a
 * request differently that could not be judged.
 */
const isNoDifference = ({ isInBoth, effect }: ComparedDeviation) => isInBoth && effect !== 'not-judged';

/**
 * Whether the environment that received the requests has the same deviation. For harmful deviations, that is decided for each request
 * when it is checked (`alsoRefusedBy`): counters with the same rule may be about different requests. The hash shows whether the
 * environment still has the contract that refused them.
 */
function createIsInBoth(
  report: ContractReport,
  from: GuardedEnvironment,
): (row: ReportedDeviation) => boolean {
  const own = new Set(report.deviations.filter((row) => isChecked(row, from, from)).map(keyOf));
  return (row) => {
    if (row.hash === from.own.hash || row.alsoRefusedBy === from.own.hash) return true;
    return row.level !== 'harmful' && own.has(keyOf(row));
  };
}

interface ComparedDeviation extends ReportedDeviation {
  readonly isInBoth: boolean;
}

/** Whether a row is about requests of `from`, checked against the contract of `against`. Equal contracts have the same rows. */
const isChecked = (
  { environment, direction, hash }: Pick<ReportedMessages, 'environment' | 'direction' | 'hash'>,
  from: GuardedEnvironment,
  against: GuardedEnvironment,
) => environment === from.name && direction === 'request' && hash === against.own.hash;

const keyOf = ({ operation, path, rule }: ReportedDeviation) => `${operation} ${path} ${rule}`;

/** Merges rows that differ only in `isOwn` or `alsoRefusedBy`: a reload can change both. */
function mergeRows(rows: readonly ComparedDeviation[]): readonly ComparedDeviation[] {
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

/** The period of the comparison before a switch. */
const defaultDays = 7;

/** Compares two environments of the configuration in effect by the report of the last days; today is one of them. */
export function createCompareContracts(
  report: ReportReader,
  guarded: () => Pick<GuardedEnvironments, 'all'>,
): (from: string, to: string, days?: number) => Promise<ContractComparison | undefined> {
  return async (from, to, days = defaultDays) =>
    compareContracts(await report.read(Date.now() - (days - 1) * dayMs), guarded(), from, to);
}
