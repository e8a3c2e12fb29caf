/** What this instance reports of itself to the other instances, every second. */

import type { Readiness } from './admin/dashboard-snapshot.ts';
import type { InstanceFigures, InstanceReport, ReportedCircuit } from './telemetry/fleet-messages.ts';
import { type SecondCounts, statsOfCounts, sumOfCounts } from './telemetry/live-stats.ts';
import type { ProcessFigures } from './telemetry/process-figures.ts';
import type { CircuitView } from './upstream/circuit/tenant-circuits.ts';
import type { EnvironmentLimiterStats } from './upstream/upstreams.ts';
import { version } from './version.ts';

interface ReportSources {
  readonly instanceId: string;
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

/**
 * @param startedAt ISO 8601
 * @returns creates the report; its argument are the seconds that have ended, oldest first
 */
export function createInstanceReport(
  { instanceId, readiness, circuits, limiters, notifications, processFigures }: ReportSources,
  startedAt: string = new Date().toISOString(),
): (seconds: readonly SecondCounts[]) => InstanceReport {
  return (seconds) => {
    const { ready, reasons } = readiness();
    const queues = limiters().map(({ environment, waiting, running }) => ({
      environment,
      waiting: { ...waiting },
      inFlight: running,
    }));
    return {
      id: instanceId,
      name: instanceId,
      version,
      since: startedAt,
      at: new Date().toISOString(),
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

/** With its members in the order of the message: the other instances then show the same bytes. */
function reportCause(cause: CircuitView['cause']): ReportedCircuit['cause'] {
  if (!cause) return null;
  const { at, openedAt, xRequestId, operation, tenant, why, count, calls } = cause;
  return { at, openedAt, xRequestId, operation, tenant, why: shortened(why), count, calls };
}

const shortened = (text: string) => text.slice(0, maxTextLength);

const sumOf = <Item>(items: readonly Item[], numberOf: (item: Item) => number) =>
  items.reduce((sum, item) => sum + numberOf(item), 0);
