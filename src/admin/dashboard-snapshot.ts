/** The console's view of one instance: a snapshot every second, shared by all consoles, and five minutes of samples. */

import { isDeepStrictEqual } from 'node:util';
import type { CertificateView } from '../certificates/installed-certificates.ts';
import type { ActiveRecord } from '../environments/active-environment.ts';
import type { LossReport } from '../idempotency/loss-guard.ts';
import type { SecondStats } from '../telemetry/live-stats.ts';
import type { CircuitView } from '../upstream/circuit/tenant-circuits.ts';
import type { EnvironmentLimiterStats } from '../upstream/upstreams.ts';
import { type StateView, viewState } from './state-view.ts';

interface Dashboard {
  /** The current state, with the last five minutes. */
  snapshot(): Snapshot & { readonly samples: readonly Sample[]; readonly seconds: readonly SecondStats[] };
  /** Takes the next sample. @returns the fields that have changed, and what is new */
  refresh(): Partial<Snapshot> & { readonly sample: Sample; readonly seconds: readonly SecondStats[] };
}

/** None of these reads from the shared state: the console must work during an outage of it. */
export interface DashboardSources {
  readonly active: { known(): Pick<ActiveRecord, 'environment' | 'version'> | undefined };
  readonly environments: () => readonly EnvironmentSummary[];
  readonly circuits: () => readonly CircuitView[];
  readonly shapers: () => readonly EnvironmentLimiterStats[];
  readonly inDoubt: () => number | undefined;
  readonly readiness: () => Readiness;
  readonly sharedState: () => LossReport;
  readonly listenerCertificate: () => CertificateSummary | null;
  /** The seconds that have ended, oldest first. */
  readonly recentSeconds: () => readonly SecondStats[];
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
  readonly sharedState: StateView;
  /** `null` if TPP systems use plain HTTP. */
  readonly listenerCertificate: CertificateSummary | null;
}

interface EnvironmentSummary {
  readonly name: string;
  readonly baseUrl: string;
  readonly standardVersion: string;
  readonly certificate: CertificateSummary | null;
  readonly signingCertificate: CertificateSummary | null;
}

type CertificateSummary = Pick<CertificateView, 'subject' | 'notAfter' | 'daysLeft'>;

/** Queues and circuits in one second. */
interface Sample {
  /** Seconds since 1970. */
  readonly at: number;
  /** Waiting calls by environment. */
  readonly waiting: Readonly<Record<string, number>>;
  /** The state in effect by environment and lane, such as `production write`; a hold is `held-open` or `held-closed`. */
  readonly circuits: Readonly<Record<string, string>>;
}

const historySeconds = 300;

/** @param now milliseconds since 1970 */
export function createDashboard(sources: DashboardSources, now: () => number = Date.now): Dashboard {
  let samples: readonly Sample[] = [];
  let last: Partial<Snapshot> = {};
  let lastSecond = 0;

  return {
    snapshot: () => ({
      ...takeSnapshot(sources),
      samples,
      seconds: sources.recentSeconds().slice(-historySeconds),
    }),
    refresh() {
      const snapshot = takeSnapshot(sources);
      const changed = changedFields(last, snapshot);
      last = snapshot;
      const sample = takeSample(snapshot, Math.floor(now() / 1_000));
      samples = [...samples, sample].slice(-historySeconds);
      const seconds = sources.recentSeconds().filter(({ at }) => at > lastSecond);
      lastSecond = seconds.at(-1)?.at ?? lastSecond;
      return { ...changed, sample, seconds: seconds.slice(-historySeconds) };
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
    sharedState: viewState(sources.sharedState()),
    listenerCertificate: sources.listenerCertificate(),
  };
}

/** Leaves out every other field that the source may have. */
const summarizeEnvironment = ({
  name,
  baseUrl,
  standardVersion,
  certificate,
  signingCertificate,
}: EnvironmentSummary): EnvironmentSummary => ({
  name,
  baseUrl,
  standardVersion,
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

function takeSample({ shapers, circuits }: Snapshot, at: number): Sample {
  return {
    at,
    waiting: Object.fromEntries(
      shapers.map(({ environment, waiting: { write, read, status } }) => [
        environment,
        write + read + status,
      ]),
    ),
    circuits: Object.fromEntries(
      circuits.map(({ environment, lane, state, hold }) => [
        `${environment} ${lane}`,
        hold ? `held-${hold}` : state,
      ]),
    ),
  };
}
