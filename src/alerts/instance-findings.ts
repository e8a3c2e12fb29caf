/** What an instance finds about itself, and about the others. */

import type { FleetScope, InstanceView } from '../telemetry/fleet.ts';
import { clockTime, countOf, type Finding, listText } from './finding.ts';
import { findRestarts } from './instance-restarts.ts';

/** What may lose payments: see DatabaseWarning. */
interface DatabaseProblem {
  readonly kind: string;
  readonly text: string;
  /** Whether it has been so since the start of this instance. */
  readonly isOld: boolean;
}

export interface OwnFacts {
  readonly nowMs: number;
  readonly database: {
    readonly problem: string | undefined;
    readonly warnings: readonly DatabaseProblem[];
    /** The mean of the statements of writes in the last 10 seconds, if they are slow. Milliseconds. */
    readonly slowMs: number | undefined;
    readonly failedOverAtMs: number | undefined;
    readonly isInMemory: boolean;
  };
  /** Why new payments are refused, although the database works. */
  readonly paymentsStopped: string | undefined;
  readonly redisProblems: readonly string[];
  readonly reloadErrors: readonly string[];
  /** What is shed, and by how much the event loop is late: milliseconds. */
  readonly shedding: string;
  readonly eventLoopDelayMs: number;
  readonly overduePolls: number;
  /** For how long no connection has been refused because of the connection limit. Milliseconds. */
  readonly connectionsAcceptedForMs: number;
  /** The tenants that have used their storage. */
  readonly tenantsWithoutStorage: readonly string[];
  /** How many tenants are configured; without clients, all callers are one. */
  readonly tenants: number;
}

export interface FleetFacts {
  readonly ownId: string;
  readonly instances: readonly InstanceView[];
  readonly scope: FleetScope;
  readonly expectedInstances: number;
}

export const findOnInstance = (facts: OwnFacts): readonly Finding[] => [
  ...database(facts),
  ...facts.redisProblems.map(
    (problem): Finding => ({ id: 'redis-unavailable', severity: 'warning', text: sentence(problem) }),
  ),
  ...(facts.paymentsStopped === undefined
    ? []
    : [{ id: 'payments-stopped', severity: 'critical', text: sentence(facts.paymentsStopped) } as const]),
  ...reload(facts),
  ...overload(facts),
  ...polls(facts),
  ...facts.tenantsWithoutStorage.map((tenant) => storageLimit(tenant, facts)),
];

export const findInFleet = (facts: FleetFacts): readonly Finding[] => [
  ...lost(facts),
  ...notReady(facts),
  ...unseen(facts),
  ...differences(facts),
];

const sentence = (text: string) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;

const failoverShownMs = 900_000;

function database({
  database: { problem, warnings, slowMs, failedOverAtMs, isInMemory },
  nowMs,
}: OwnFacts): readonly Finding[] {
  const found: Finding[] = warnings.map(warningFinding);
  if (problem !== undefined)
    found.push({
      id: 'database-unavailable',
      severity: 'critical',
      text: `The database cannot be used: ${problem.replace(/\.$/, '')}. Payments are refused.`,
    });
  if (slowMs !== undefined)
    found.push({
      id: 'database-slow',
      severity: 'warning',
      text: `A statement takes ${Math.round(slowMs)} ms in the database, and a payment three of them.`,
    });
  if (failedOverAtMs !== undefined && nowMs - failedOverAtMs < failoverShownMs)
    found.push({
      id: 'database-failed-over',
      severity: 'info',
      text: 'The database has failed over to another server.',
      sinceMs: failedOverAtMs,
    });
  if (isInMemory)
    found.push({
      id: 'database-in-memory',
      severity: 'info',
      text: 'The database is in memory: a restart loses the used X-Request-IDs, the payments and what is in doubt.',
    });
  return found;
}

function warningFinding({ kind, text, isOld }: DatabaseProblem): Finding {
  if (kind === 'failover') return { id: 'database-lost-writes', severity: 'critical', text: sentence(text) };
  if (kind === 'standby-missing')
    return { id: 'database-standby-missing', severity: 'critical', text: sentence(text) };
  const isChoice = isOld && kind === 'no-standby';
  const severity = isChoice ? 'info' : 'warning';
  return { id: 'database-may-lose-payments', severity, subject: kind, text: sentence(text) };
}

function reload({ reloadErrors }: OwnFacts): readonly Finding[] {
  const [first, ...others] = reloadErrors;
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : ` (and ${countOf(others.length, 'more error')})`;
  return [
    {
      id: 'reload-refused',
      severity: 'warning',
      text: `The new configuration cannot be used: ${first}${more}`,
    },
  ];
}

const lateMs = 250;

const refusedShownMs = 60_000;

function overload({ shedding, eventLoopDelayMs, connectionsAcceptedForMs }: OwnFacts): readonly Finding[] {
  const warn = (text: string) => [{ id: 'overloaded', severity: 'warning', text } as const];
  const refused = { 'status-reads': 'status reads', everything: 'all requests' };
  const what = Object.entries(refused).find(([name]) => name === shedding)?.[1];
  const late = `its event loop is late by ${Math.round(eventLoopDelayMs)} ms`;
  if (what !== undefined) {
    const severity = shedding === 'everything' ? 'critical' : 'warning';
    return [{ id: 'overloaded', severity, text: `An instance is overloaded and refuses ${what}: ${late}.` }];
  }
  if (eventLoopDelayMs > lateMs) return warn(`An instance is overloaded: ${late}.`);
  if (connectionsAcceptedForMs >= refusedShownMs) return [];
  return warn('An instance has refused connections: listen.maxConnections was reached, and none was idle.');
}

function polls({ overduePolls }: OwnFacts): readonly Finding[] {
  if (overduePolls === 0) return [];
  const text = `${countOf(overduePolls, 'read')} of the gateway itself ${overduePolls === 1 ? 'is' : 'are'} late.`;
  return [{ id: 'polls-overdue', severity: 'warning', text }];
}

const storageLimit = (tenant: string, { tenants }: OwnFacts): Finding => ({
  id: 'storage-limit',
  severity: tenants === 1 ? 'critical' : 'warning',
  subject: tenant,
  text: `Payments of ${tenant} are refused: it has used idempotency.maxStoredPerTenant.`,
});

function lost({ instances }: FleetFacts): readonly Finding[] {
  const restarts = findRestarts(instances);
  const restarted = new Set([...restarts.values()].flat());
  const down = instances.filter((instance) => instance.status === 'down' && !restarted.has(instance));
  return [
    ...down.map(({ name, lastSeen }): Finding => {
      const sinceMs = Date.parse(lastSeen);
      const text = `Instance ${name} is down: its last report was at ${clockTime(sinceMs)}.`;
      return { id: 'instance-lost', severity: 'warning', subject: name, text, sinceMs };
    }),
    ...Array.from(restarts, ([host, crashed]): Finding => {
      const lastMs = Math.max(...crashed.map(({ lastSeen }) => Date.parse(lastSeen)));
      const text = `${host} has crashed ${countOf(crashed.length, 'time')} within the last hour, last at ${clockTime(lastMs)}; it was started again.`;
      return { id: 'instance-restarts', severity: 'warning', subject: host, text, sinceMs: lastMs };
    }),
  ];
}

/** This instance reports its own problems as alerts. */
const notReady = ({ instances, ownId }: FleetFacts): readonly Finding[] =>
  instances
    .filter(
      ({ id, status, ready, reasons }) =>
        status === 'up' && !ready && id !== ownId && !reasons.includes('draining'),
    )
    .map(({ name, reasons }) => ({
      id: 'instance-not-ready',
      severity: 'warning',
      subject: name,
      text: `Instance ${name} is not ready: ${reasons.join('; ')}.`,
    }));

const unseen = ({ scope }: FleetFacts): readonly Finding[] =>
  scope.why === null ? [] : [{ id: 'instances-unseen', severity: 'warning', text: scope.why }];

const maxClockDifferenceMs = 2_000;

function differences({ instances, expectedInstances }: FleetFacts): readonly Finding[] {
  const running = instances.filter(({ status }) => status === 'up');
  if (running.length < 2) return [];
  const found: Finding[] = [];
  const groups = [...Map.groupBy(running, ({ configurationHash }) => configurationHash).values()];
  const versions = [...new Set(running.map(({ version }) => version))].toSorted();
  if (groups.length > 1)
    found.push({
      id: 'configurations-differ',
      severity: versions.length > 1 ? 'info' : 'warning',
      text: `The instances run with different configurations: ${groups.map((group) => group.map(({ name }) => name).join(', ')).join(' / ')}.`,
    });
  if (versions.length > 1)
    found.push({
      id: 'versions-differ',
      severity: 'info',
      text: `The instances run different versions: ${listText(versions)}.`,
    });
  const clocks = running.map(({ clockDifferenceMs }) => clockDifferenceMs);
  const differenceMs = Math.max(...clocks) - Math.min(...clocks);
  if (differenceMs > maxClockDifferenceMs)
    found.push({
      id: 'clocks-differ',
      severity: 'warning',
      text: `The clocks of the instances differ by ${(differenceMs / 1_000).toFixed(1)} s.`,
    });
  if (running.length > expectedInstances)
    found.push({
      id: 'more-instances-than-expected',
      severity: 'warning',
      text: `${running.length} instances are running, and shaping.expectedInstances is ${expectedInstances}.`,
    });
  return found;
}
