/** What this instance reports of itself, every second. */

import type { Readiness } from './admin/dashboard-snapshot.ts';
import { configurationHash } from './config/configuration-hash.ts';
import type { Config } from './config/schema.ts';
import type { InstanceFigures, InstanceReport, ReportedCircuit } from './telemetry/fleet-reports.ts';
import { type SecondCounts, statsOfCounts, sumOfCounts } from './telemetry/live-stats.ts';
import type { ProcessFigures } from './telemetry/process-figures.ts';
import type { CircuitView } from './upstream/circuit/tenant-circuits.ts';
import type { EnvironmentLimiterStats } from './upstream/upstreams.ts';
import { version } from './version.ts';

interface ReportSources {
  readonly configuration: () => Config;
  readonly readiness: () => Readiness;
  readonly circuits: () => readonly CircuitView[];
  readonly limiters: () => readonly EnvironmentLimiterStats[];
  readonly notifications: () => Pick<
    InstanceFigures,
    'waits' | 'streams' | 'pollsPerSecond' | 'overduePolls'
  >;
  readonly processFigures: () => ProcessFigures;
}

/** How many seconds the rates and quantiles cover: with few requests, those of a single second jump. */
const figureSeconds = 5;
const maxTenants = 20;
const maxTextLength = 1_000;

/** @returns creates the report; its argument are the seconds that have ended, oldest first */
export function createInstanceReport({
  configuration,
  readiness,
  circuits,
  limiters,
  notifications,
  processFigures,
}: ReportSources): (seconds: readonly SecondCounts[]) => Omit<InstanceReport, 'reload' | 'alerts'> {
  let hashed: { readonly config: Config; readonly hash: string } | undefined;
  const hashOf = (config: Config) => {
    if (hashed?.config !== config) hashed = { config, hash: configurationHash(config) };
    return hashed.hash;
  };
  return (seconds) => {
    const { ready, reasons } = readiness();
    const queues = limiters().map(({ environment, waiting, running }) => ({
      environment,
      waiting: { ...waiting },
      inFlight: running,
    }));
    return {
      version,
      configurationHash: hashOf(configuration()),
      ready,
      reasons: reasons.map(shortened),
      figures: {
        ...requestFigures(seconds.slice(-figureSeconds)),
        waiting: sumOf(queues, ({ waiting: { write, read, status } }) => write + read + status),
        inFlight: sumOf(queues, ({ inFlight }) => inFlight),
        ...notifications(),
        ...processFigures(),
      },
      circuits: circuits().filter(isNoteworthy).map(reportCircuit),
      queues,
    };
  };
}

function requestFigures(seconds: readonly SecondCounts[]) {
  const { requests, refused, failed, p50Ms, p99Ms } = statsOfCounts(sumOfCounts(0, seconds));
  const perSecond = (count: number) => count / Math.max(1, seconds.length);
  return {
    requestsPerSecond: perSecond(requests),
    refusedPerSecond: perSecond(refused),
    failedPerSecond: perSecond(failed),
    p50Ms,
    p99Ms,
  };
}

const isNoteworthy = ({ state, hold, tenants }: CircuitView) =>
  state !== 'closed' || hold !== null || tenants.length > 0;

const reportCircuit = ({ environment, lane, state, hold, cause, tenants }: CircuitView): ReportedCircuit => ({
  environment,
  lane,
  state,
  hold,
  cause: reportCause(cause ?? tenants.find((one) => one.cause)?.cause ?? null),
  tenants: tenants.slice(0, maxTenants).map(({ tenant }) => tenant),
});

function reportCause(cause: CircuitView['cause']): ReportedCircuit['cause'] {
  if (!cause) return null;
  const { at, openedAt, xRequestId, operation, tenant, why, count, calls } = cause;
  return { at, openedAt, xRequestId, operation, tenant, why: shortened(why), count, calls };
}

const shortened = (text: string) => text.slice(0, maxTextLength);

const sumOf = <Item>(items: readonly Item[], numberOf: (item: Item) => number) =>
  items.reduce((sum, item) => sum + numberOf(item), 0);
