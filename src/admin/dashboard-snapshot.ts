/** What the console shows of one instance: looked at once a second, for all who watch, and kept for five minutes. */

import { isDeepStrictEqual } from 'node:util';
import type { CertificateView } from '../certificates/installed-certificates.ts';
import type { SecondStats } from '../telemetry/live-stats.ts';
import type { CircuitView } from '../upstream/circuit/circuit.ts';
import type { EnvironmentLimiterStats } from '../upstream/upstreams.ts';
import type { Readiness } from './admin-app.ts';

type CertificateSummary = Pick<CertificateView, 'subject' | 'notAfter' | 'daysLeft'>;

/** One side of the bank. */
interface EnvironmentSummary {
  readonly name: string;
  readonly baseUrl: string;
  readonly standardVersion: string;
  readonly certificate: CertificateSummary | null;
  readonly signingCertificate: CertificateSummary | null;
}

/** Queues and circuits at one moment. */
interface Sample {
  /** Seconds since 1970. */
  readonly at: number;
  /** Calls that wait for their turn, by environment. */
  readonly waiting: Readonly<Record<string, number>>;
  /** By environment and lane, such as `production write`: what is held counts as held. */
  readonly circuits: Readonly<Record<string, string>>;
}

/** What may change from one second to the next. */
interface Snapshot {
  readonly active: string | null;
  readonly version: number | null;
  readonly environments: readonly EnvironmentSummary[];
  readonly circuits: readonly CircuitView[];
  readonly shapers: readonly EnvironmentLimiterStats[];
  /** How many payments are in doubt, of all instances; `null` while that is not known. */
  readonly inDoubt: number | null;
  readonly readiness: Readiness;
  /** `null` if TPP systems are served over plain HTTP. */
  readonly listenerCertificate: CertificateSummary | null;
}

/** What there is to look at. Nothing of it asks the shared state: an outage there must not blind the console. */
export interface DashboardSources {
  readonly active: { known(): { readonly environment: string; readonly version: number } | undefined };
  readonly environments: () => readonly EnvironmentSummary[];
  readonly circuits: () => readonly CircuitView[];
  readonly shapers: () => readonly EnvironmentLimiterStats[];
  readonly inDoubt: () => number | undefined;
  readonly readiness: () => Readiness;
  readonly listenerCertificate: () => CertificateSummary | null;
  /** The seconds that are over, the oldest first. */
  readonly recentSeconds: () => readonly SecondStats[];
}

export interface Dashboard {
  /** Everything there is now, with the last five minutes. */
  snapshot(): Snapshot & { readonly samples: readonly Sample[]; readonly seconds: readonly SecondStats[] };
  /** Looks again. @returns what has changed, and what is new */
  refresh(): Partial<Snapshot> & { readonly sample: Sample; readonly seconds: readonly SecondStats[] };
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
      const moment = takeSnapshot(sources);
      const changed = changedFields(last, moment);
      last = moment;
      const sample = takeSample(moment, Math.floor(now() / 1_000));
      samples = [...samples, sample].slice(-historySeconds);
      const seconds = sources.recentSeconds().filter(({ at }) => at > lastSecond);
      lastSecond = seconds.at(-1)?.at ?? lastSecond;
      return { ...changed, sample, seconds: seconds.slice(-historySeconds) };
    },
  };
}

function takeSnapshot({
  active,
  environments,
  circuits,
  shapers,
  inDoubt,
  ...sources
}: DashboardSources): Snapshot {
  const known = active.known();
  return {
    active: known?.environment ?? null,
    version: known?.version ?? null,
    environments: environments().map(summarizeEnvironment),
    circuits: circuits(),
    shapers: shapers(),
    inDoubt: inDoubt() ?? null,
    readiness: sources.readiness(),
    listenerCertificate: sources.listenerCertificate(),
  };
}

function changedFields(before: Partial<Snapshot>, after: Snapshot): Partial<Snapshot> {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => !old.has(name) || !isDeepStrictEqual(old.get(name), value),
    ),
  );
}

/** An environment has more than is shown. */
function summarizeEnvironment({
  name,
  baseUrl,
  standardVersion,
  certificate,
  signingCertificate,
}: EnvironmentSummary): EnvironmentSummary {
  return { name, baseUrl, standardVersion, certificate, signingCertificate };
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
