/** Handlers of the admin API for the report of the contract guard and the comparison of two environments. */

import type { GuardedEnvironment, GuardedEnvironments } from '../contract-guard/guarded-environments.ts';
import type { ContractReport, ReportedDeviation, ReportReader } from '../contract-guard/read-report.ts';
import type { ContractComparison } from '../request/contract-comparison.ts';
import { dayMs } from '../store/contract-report.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { isoTime, isoTimeOrNull } from './iso-time.ts';
import type { AdminApi } from './routes.ts';

export interface ContractDependencies {
  readonly contractReport: ReportReader;
  /** What the configuration in effect checks. */
  readonly guarded: () => Pick<GuardedEnvironments, 'all'>;
  /** @returns `undefined` if one of the environments does not exist */
  readonly compareTo: (from: string, to: string, days?: number) => Promise<ContractComparison | undefined>;
}

type ContractHandlers = Pick<AdminApi, 'showContractReport' | 'compareContracts'>;

/** The report has at most as many deviations: those of the contracts in effect, the harmful and the most frequent ones first. */
const maxDeviations = 1_000;

export function createContractHandlers({
  contractReport,
  guarded,
  compareTo,
}: ContractDependencies): ContractHandlers {
  return {
    async showContractReport({ query: { environment, direction, level, days } }) {
      const report = await contractReport.read(Date.now() - (Number(days) - 1) * dayMs);
      const environments = guarded().all.filter(
        ({ name }) => environment === undefined || name === environment,
      );
      if (environment !== undefined && environments.length === 0)
        throw new AdminRefusal(404, 'Unknown environment.');
      const hashes = new Map(environments.map(({ name, own }) => [name, own.hash]));
      const isEarlier = (row: ReportedDeviation) => hashes.get(row.environment) !== row.hash;
      const matching = report.deviations
        .filter(
          (row) =>
            row.isOwn &&
            (environment === undefined || row.environment === environment) &&
            (direction === undefined || row.direction === direction) &&
            (level === undefined || row.level === level),
        )
        .toSorted((one, other) => Number(isEarlier(one)) - Number(isEarlier(other)));
      return {
        from: isoTime(report.fromMs),
        environments: environments.map((one) => viewEnvironment(one, report)),
        deviations: matching.slice(0, maxDeviations).map((row) => viewDeviation(row, !isEarlier(row))),
        omitted: Math.max(0, matching.length - maxDeviations),
      };
    },

    async compareContracts({ query: { from, to, days } }) {
      const comparison = await compareTo(from, to, Number(days));
      if (!comparison) throw new AdminRefusal(404, 'Unknown environment.');
      return viewComparison(comparison);
    },
  };
}

function viewEnvironment(
  { name, standardVersion, own, requests, responses, sample }: GuardedEnvironment,
  { messages, skipped }: ContractReport,
) {
  const checked = (direction: 'request' | 'response') => {
    const rows = messages.filter(
      (row) => row.isOwn && row.environment === name && row.hash === own.hash && row.direction === direction,
    );
    const since = Math.min(...rows.map(({ firstMs }) => firstMs));
    return {
      checked: rows.reduce((sum, { count }) => sum + count, 0),
      checkedSince: rows.length > 0 ? isoTime(since) : null,
      skipped: skipped
        .filter((row) => row.environment === name && row.direction === direction)
        .map(({ reason, count }) => ({ reason, count })),
    };
  };
  return {
    name,
    standardVersion,
    contract: own.hash,
    requests: { mode: requests, ...checked('request') },
    responses: { mode: responses, sample, ...checked('response') },
  };
}

function viewDeviation(
  { hash, isOwn: _, firstMs, lastMs, changedMs, requestId, ...row }: ReportedDeviation,
  current: boolean,
) {
  return {
    ...row,
    contract: hash,
    current,
    firstSeen: isoTime(firstMs),
    lastSeen: isoTime(lastMs),
    xRequestId: requestId,
    changedAt: isoTimeOrNull(changedMs),
  };
}

/** For the comparison itself, and for the pre-flight of a switch. */
export function viewComparison({
  sinceMs,
  judgedSinceMs,
  isComplete,
  differences,
  ...comparison
}: ContractComparison) {
  return {
    ...comparison,
    since: isoTime(sinceMs),
    judgedSince: isoTimeOrNull(judgedSinceMs),
    complete: isComplete,
    differences: differences.map(
      ({
        operation,
        path,
        rule,
        level,
        effect,
        count,
        clients,
        lastMs,
        requestId,
        isInBoth,
        mustAcknowledge,
      }) => ({
        ...{ operation, path, rule, level, effect, count, clients },
        lastSeen: isoTime(lastMs),
        xRequestId: requestId,
        inBoth: isInBoth,
        mustAcknowledge,
      }),
    ),
  };
}
