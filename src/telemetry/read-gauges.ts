/** What is only looked at when somebody reads the metrics: circuits, queues, instances, the build. */

import { readFileSync } from 'node:fs';
import type { InstalledCertificate } from '../certificates/installed-certificates.ts';
import type { Metrics } from './metrics.ts';

/** Of one environment of the bank. */
export interface ShaperGauges {
  readonly environment: string;
  readonly waiting: Readonly<Record<string, number>>;
  readonly running: number;
  readonly perSecond: number;
  readonly pausedMs: number;
}

/** Where it is read. */
export interface Gauges {
  readonly circuits: () => readonly {
    readonly environment: string;
    readonly lane: string;
    readonly state: string;
  }[];
  readonly shapers: () => readonly ShaperGauges[];
  readonly certificates: () => readonly InstalledCertificate[];
  readonly liveInstances: () => number | undefined;
  readonly expectedInstances: () => number;
}

const circuitStates = ['closed', 'open', 'half-open', 'probation'] as const;

/** Sets every gauge to what it is now; of what was configured before and is not any more, nothing stays. */
export function readGauges(metrics: Pick<Metrics, 'set' | 'clear'>, gauges: Gauges): void {
  metrics.clear('penstock_circuit_state');
  for (const { environment, lane, state } of gauges.circuits())
    for (const each of circuitStates)
      metrics.set('penstock_circuit_state', { environment, lane, state: each }, Number(each === state));

  for (const name of [
    'penstock_queue_length',
    'penstock_calls_running',
    'penstock_shaping_rate',
    'penstock_shaping_pause_seconds',
  ] as const)
    metrics.clear(name);
  for (const { environment, waiting, running, perSecond, pausedMs } of gauges.shapers()) {
    for (const [lane, length] of Object.entries(waiting))
      metrics.set('penstock_queue_length', { environment, lane }, length);
    metrics.set('penstock_calls_running', { environment }, running);
    metrics.set('penstock_shaping_rate', { environment }, perSecond);
    metrics.set('penstock_shaping_pause_seconds', { environment }, pausedMs / 1_000);
  }

  metrics.clear('penstock_certificate_expiry_seconds');
  for (const { environment, use, info } of gauges.certificates())
    metrics.set('penstock_certificate_expiry_seconds', { environment, use }, info.notAfterMs / 1_000);

  const live = gauges.liveInstances();
  if (live !== undefined) metrics.set('penstock_instances_live', {}, live);
  metrics.set('penstock_instances_expected', {}, gauges.expectedInstances());
  metrics.set('penstock_build_info', { version, node: process.version }, 1);
}

const manifest: unknown = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), { encoding: 'utf8' }),
);
const version = manifest instanceof Object && 'version' in manifest ? String(manifest.version) : 'unknown';
