/** What `GET /api/state` shows over time. */

import { setTimeout } from 'node:timers/promises';
import { callAdminApi } from './admin-api.ts';
import { jsonOf } from './call.ts';
import type { TestScope } from './test-scope.ts';

/** A response of `GET /api/state`. */
export interface StateReport {
  readonly status: 'ok' | 'checking' | 'lost';
  readonly since: string | null;
  readonly cause: string | null;
  readonly missing: readonly { readonly instance: string; readonly lastSeen: string | null }[];
  readonly uncovered: boolean;
}

/** A report, and when it was read: milliseconds of `performance.now()`. */
export interface ObservedReport extends StateReport {
  readonly atMs: number;
}

export interface StateWatch {
  /** Every report that differs from the one before it, by instance. */
  readonly reports: readonly (readonly ObservedReport[])[];
  /** Ends the observation with a last read of each instance. */
  stop(): Promise<void>;
}

type AdminListener = Parameters<typeof callAdminApi>[0];

/** The state as one instance reports it; `undefined` if it does not answer, or not with 200. */
export async function readState(gateway: AdminListener): Promise<StateReport | undefined> {
  const reply = await callAdminApi(gateway, 'GET', '/api/state').catch(() => undefined);
  return reply?.status === 200 ? (jsonOf(reply) as unknown as StateReport) : undefined; // by the contract of the path
}

/** The pause between two reads of one instance, in milliseconds. */
const pauseMs = 50;

/** Reads the state of all instances repeatedly, until it is stopped or the test ends. */
export function watchState(life: TestScope, gateways: readonly AdminListener[]): StateWatch {
  const reports: ObservedReport[][] = gateways.map(() => []);
  let isStopped = false;
  const watch = async (gateway: AdminListener, own: ObservedReport[]) => {
    for (let isLast = false; !isLast; ) {
      isLast = isStopped;
      const report = await readState(gateway);
      if (report && !isSame(report, own.at(-1))) own.push({ ...report, atMs: performance.now() });
      if (!isLast) await setTimeout(pauseMs);
    }
  };
  const watches = Promise.all(gateways.map((gateway, index) => watch(gateway, reports[index] ?? [])));
  const stop = async () => {
    isStopped = true;
    await watches;
  };
  life.after(() => {
    isStopped = true;
  });
  return { reports, stop };
}

const isSame = (one: StateReport, other: StateReport | undefined) =>
  other !== undefined &&
  one.status === other.status &&
  one.uncovered === other.uncovered &&
  one.missing.length === other.missing.length;
