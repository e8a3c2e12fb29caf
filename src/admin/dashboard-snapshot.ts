/** The console's view: a snapshot every second, shared by all consoles, and five minutes of samples. */

import { isDeepStrictEqual } from 'node:util';
import type { CanPay } from '../alerts/can-pay.ts';
import type { Alert } from '../alerts/finding.ts';
import type { CertificateView } from '../certificates/installed-certificates.ts';
import type { ActiveEnvironment } from '../environments/active-environment.ts';
import type { FleetScope, InstanceView } from '../telemetry/fleet.ts';
import type { ReportedCircuit } from '../telemetry/fleet-reports.ts';
import { maxSeconds, type SecondStats } from '../telemetry/live-stats.ts';
import type { CircuitView } from '../upstream/circuit/tenant-circuits.ts';
import type { EnvironmentLimiterStats } from '../upstream/upstreams.ts';

interface Dashboard {
  /** The current state, with the last five minutes. */
  snapshot(): Snapshot & { readonly samples: readonly Sample[]; readonly seconds: readonly SecondStats[] };
  /** Takes the next sample. @returns the fields that have changed, and what is new */
  refresh(): Partial<Snapshot> & { readonly sample: Sample; readonly seconds: readonly SecondStats[] };
}

/** None of these reads from the database: the console must work during an outage of it. */
export interface DashboardSources {
  readonly active: Pick<ActiveEnvironment, 'known'>;
  readonly environments: () => readonly EnvironmentSummary[];
  readonly circuits: () => readonly CircuitView[];
  readonly shapers: () => readonly EnvironmentLimiterStats[];
  readonly inDoubt: () => number | undefined;
  readonly readiness: () => Readiness;
  readonly alerts: () => readonly Alert[];
  readonly canPay: () => CanPay;
  readonly listenerCertificate: () => CertificateSummary | null;
  /** `admin.links`. */
  readonly links: () => LinkTemplates;
  /** The seconds of all instances that have ended, oldest first. A second that has changed is a new object. */
  readonly recentSeconds: () => readonly SecondStats[];
  readonly instances: () => readonly InstanceView[];
  readonly fleet: () => FleetScope;
}

/** Whether the instance can take requests, with the reasons and warnings. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
}

interface Snapshot {
  readonly active: string | null;
  readonly version: number | null;
  readonly environments: readonly EnvironmentSummary[];
  readonly circuits: readonly CircuitView[];
  readonly shapers: readonly EnvironmentLimiterStats[];
  /** The number of payments in doubt, of all instances; `null` while it is unknown. */
  readonly inDoubt: number | null;
  readonly readiness: Readiness;
  /** Of all instances, the most severe first. */
  readonly alerts: readonly Alert[];
  /** Whether customers can pay, as the alerts say. */
  readonly canPay: CanPay;
  readonly instances: readonly InstanceView[];
  /** Whether `instances`, `samples` and `seconds` include all instances. */
  readonly fleet: FleetScope;
  /** `null` if TPP systems use plain HTTP. */
  readonly listenerCertificate: CertificateSummary | null;
  readonly links: LinkTemplates;
}

/** Addresses with placeholders such as `{environment}`; `null` if none is configured. */
interface LinkTemplates {
  readonly grafana: string | null;
  readonly traces: string | null;
}

interface EnvironmentSummary {
  readonly name: string;
  readonly baseUrl: string;
  readonly standardVersion: string;
  /** Real money moves there. */
  readonly production: boolean;
  readonly certificate: CertificateSummary | null;
  readonly signingCertificate: CertificateSummary | null;
}

type CertificateSummary = Pick<CertificateView, 'subject' | 'notAfter' | 'daysLeft'>;

/** Queues and circuits of all instances in one second. */
interface Sample {
  /** Seconds since 1970. */
  readonly at: number;
  /** Waiting calls by environment. */
  readonly waiting: Readonly<Record<string, number>>;
  /**
   * The state in effect by environment and lane, such as `production write`: that of the instance that admits fewest calls. A
   * hold is `held-open` or `held-closed`.
   */
  readonly circuits: Readonly<Record<string, string>>;
}

/** @param now milliseconds since 1970 */
export function createDashboard(sources: DashboardSources, now: () => number = Date.now): Dashboard {
  let samples: readonly Sample[] = [];
  let last: Partial<Snapshot> = {};
  /** The seconds that the last refresh has seen, by their time. */
  let lastSeconds: ReadonlyMap<number, SecondStats> = new Map();

  return {
    snapshot: () => ({
      ...takeSnapshot(sources),
      samples,
      seconds: sources.recentSeconds().slice(-maxSeconds),
    }),
    refresh() {
      const snapshot = takeSnapshot(sources);
      const changed = changedFields(last, snapshot);
      last = snapshot;
      const sample = takeSample(snapshot, Math.floor(now() / 1_000));
      samples = [...samples.filter(({ at }) => at !== sample.at), sample].slice(-maxSeconds);
      const recent = sources.recentSeconds();
      const seconds = recent.filter((second) => lastSeconds.get(second.at) !== second);
      lastSeconds = new Map(recent.map((second) => [second.at, second]));
      return { ...changed, sample, seconds: seconds.slice(-maxSeconds) };
    },
  };
}

function takeSnapshot(sources: DashboardSources): Snapshot {
  const record = sources.active.known();
  return {
    active: record?.environment ?? null,
    version: record?.version ?? null,
    environments: sources.environments().map(summarizeEnvironment),
    circuits: sources.circuits(),
    shapers: sources.shapers(),
    inDoubt: sources.inDoubt() ?? null,
    readiness: sources.readiness(),
    alerts: sources.alerts(),
    canPay: sources.canPay(),
    instances: sources.instances(),
    fleet: sources.fleet(),
    listenerCertificate: sources.listenerCertificate(),
    links: sources.links(),
  };
}

/** Leaves out every other field that the source may have. */
const summarizeEnvironment = ({
  name,
  baseUrl,
  standardVersion,
  production,
  certificate,
  signingCertificate,
}: EnvironmentSummary): EnvironmentSummary => ({
  name,
  baseUrl,
  standardVersion,
  production,
  certificate,
  signingCertificate,
});

function changedFields(before: Partial<Snapshot>, after: Snapshot): Partial<Snapshot> {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => !old.has(name) || !isDeepStrictEqual(old.get(name), value),
    ),
  );
}

function takeSample({ shapers, circuits, instances }: Snapshot, at: number): Sample {
  const running = instances.filter(({ status }) => status === 'up');
  const waiting = new Map(shapers.map(({ environment }) => [environment, 0]));
  for (const { environment, waiting: calls } of running.flatMap(({ queues }) => queues)) {
    const known = waiting.get(environment) ?? 0;
    waiting.set(environment, known + calls.write + calls.read + calls.status);
  }
  const states = new Map(circuits.map((circuit) => [circuitName(circuit), stateOf(circuit)]));
  for (const circuit of running.flatMap((instance) => instance.circuits)) {
    const [name, state] = [circuitName(circuit), stateOf(circuit)];
    if (restrictionOf(state) > restrictionOf(states.get(name))) states.set(name, state);
  }
  return { at, waiting: Object.fromEntries(waiting), circuits: Object.fromEntries(states) };
}

type CircuitInSample = Pick<ReportedCircuit, 'environment' | 'lane' | 'state' | 'hold'>;

const circuitName = ({ environment, lane }: CircuitInSample) => `${environment} ${lane}`;

const stateOf = ({ state, hold }: CircuitInSample) => (hold ? `held-${hold}` : state);

const statesByRestriction = ['closed', 'held-closed', 'probation', 'half-open', 'open', 'held-open'];
const restrictionOf = (state = '') => statesByRestriction.indexOf(state);
