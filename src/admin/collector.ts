/** What the console shows of one instance: looked at once a second, for all who watch, and kept for five minutes. */

import { isDeepStrictEqual } from 'node:util';
import type { CertificateView } from '../certificates/held.ts';
import type { Second } from '../telemetry/figures.ts';
import type { CircuitView } from '../upstream/circuit/circuit-state.ts';
import type { ShaperOf } from '../upstream/create-upstreams.ts';
import type { Readiness } from './admin-app.ts';

type ShownCertificate = Pick<CertificateView, 'subject' | 'notAfter' | 'daysLeft'>;

/** One side of the bank. */
interface SideView {
  readonly name: string;
  readonly baseUrl: string;
  readonly standardVersion: string;
  readonly certificate: ShownCertificate | null;
  readonly signingCertificate: ShownCertificate | null;
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
interface Moment {
  readonly active: string | null;
  readonly version: number | null;
  readonly environments: readonly SideView[];
  readonly circuits: readonly CircuitView[];
  readonly shapers: readonly ShaperOf[];
  /** How many payments are in doubt, of all instances; `null` while that is not known. */
  readonly inDoubt: number | null;
  readonly readiness: Readiness;
  /** `null` if TPP systems are served over plain HTTP. */
  readonly listenerCertificate: ShownCertificate | null;
}

/** What there is to look at. Nothing of it asks the shared state: an outage there must not blind the console. */
export interface Sights {
  readonly active: { known(): { readonly environment: string; readonly version: number } | undefined };
  readonly environments: () => readonly SideView[];
  readonly circuits: () => readonly CircuitView[];
  readonly shapers: () => readonly ShaperOf[];
  readonly inDoubt: () => number | undefined;
  readonly readiness: () => Readiness;
  readonly listenerCertificate: () => ShownCertificate | null;
  /** The seconds that are over, the oldest first. */
  readonly recent: () => readonly Second[];
}

export interface Collector {
  /** Everything there is now, with the last five minutes. */
  snapshot(): Moment & { readonly samples: readonly Sample[]; readonly seconds: readonly Second[] };
  /** Looks again. @returns what has changed, and what is new */
  look(): Partial<Moment> & { readonly sample: Sample; readonly seconds: readonly Second[] };
}

const keptSeconds = 300;

/** @param now milliseconds since 1970 */
export function createCollector(sights: Sights, now: () => number = Date.now): Collector {
  let samples: readonly Sample[] = [];
  let last: Partial<Moment> = {};
  let lastSecond = 0;

  return {
    snapshot: () => ({ ...momentOf(sights), samples, seconds: sights.recent().slice(-keptSeconds) }),
    look() {
      const moment = momentOf(sights);
      const changed = changesOf(last, moment);
      last = moment;
      const sample = sampleOf(moment, Math.floor(now() / 1_000));
      samples = [...samples, sample].slice(-keptSeconds);
      const seconds = sights.recent().filter(({ at }) => at > lastSecond);
      lastSecond = seconds.at(-1)?.at ?? lastSecond;
      return { ...changed, sample, seconds: seconds.slice(-keptSeconds) };
    },
  };
}

function momentOf({ active, environments, circuits, shapers, inDoubt, ...sights }: Sights): Moment {
  const known = active.known();
  return {
    active: known?.environment ?? null,
    version: known?.version ?? null,
    environments: environments().map(shownOf),
    circuits: circuits(),
    shapers: shapers(),
    inDoubt: inDoubt() ?? null,
    readiness: sights.readiness(),
    listenerCertificate: sights.listenerCertificate(),
  };
}

function changesOf(before: Partial<Moment>, after: Moment): Partial<Moment> {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => !old.has(name) || !isDeepStrictEqual(old.get(name), value),
    ),
  );
}

/** An environment has more than is shown. */
function shownOf({ name, baseUrl, standardVersion, certificate, signingCertificate }: SideView): SideView {
  return { name, baseUrl, standardVersion, certificate, signingCertificate };
}

function sampleOf({ shapers, circuits }: Moment, at: number): Sample {
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
