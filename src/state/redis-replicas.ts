/**
 * How many replicas each master has, and how many must confirm a write.
 *
 * Redis does not know how many replicas were configured, only which ones are connected. A replica that was connected counts
 * until the master is another one: otherwise a cut connection would look like a Redis without replicas.
 */

import type { StateSettings } from '../config/schema.ts';

type Replicas = StateSettings['confirm']['replicas'];

export interface ReplicaCount {
  /** Replicas that are connected now and in sync. */
  readonly online: number;
  /** The largest number at one time, since this instance first saw this master. */
  readonly most: number;
}

export interface ReplicaCounts {
  /** @param master any name @param report `INFO replication` of this master */
  observe(master: string, report: string): void;
  /** How many replicas must confirm a write; `undefined` before the first report. */
  required(master: string): number | undefined;
  /** Whether a report comes from the same master as the last one that was observed: a restarted server is another one. */
  isCurrent(master: string, report: string): boolean;
  /** Resolves at the next report of this master. */
  observed(master: string): Promise<void>;
  /** Discards the reports of masters that are not listed. */
  retain(masters: readonly string[]): void;
  /** What is missing, as a sentence with the numbers; `undefined` if nothing is. */
  problem(): string | undefined;
}

interface Observation extends ReplicaCount {
  /** The replication id of the master: a promoted or restarted server has another one. */
  readonly replicationId: string | undefined;
}

export function createReplicaCounts(replicas: Replicas): ReplicaCounts {
  const observations = new Map<string, Observation>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();
  const requiredOf = ({ most }: ReplicaCount) => (replicas === 'all' ? most : replicas);

  return {
    observe(master, report) {
      const replicationId = replicationIdOf(report);
      const online = report.match(onlineReplica)?.length ?? 0;
      const known = observations.get(master);
      const most = known?.replicationId === replicationId ? Math.max(known?.most ?? 0, online) : online;
      observations.set(master, { replicationId, online, most });
      awaited.get(master)?.resolve();
      awaited.delete(master);
    },
    required(master) {
      if (replicas !== 'all') return replicas;
      const observation = observations.get(master);
      return observation && requiredOf(observation);
    },
    isCurrent: (master, report) => observations.get(master)?.replicationId === replicationIdOf(report),
    observed(master) {
      const next = awaited.get(master) ?? Promise.withResolvers<void>();
      awaited.set(master, next);
      return next.promise;
    },
    retain(masters) {
      for (const master of observations.keys()) if (!masters.includes(master)) observations.delete(master);
    },
    problem() {
      const missing = [...observations.values()].filter((each) => each.online < requiredOf(each));
      const worst = missing.toSorted((one, other) => one.online - other.online)[0];
      return worst && missingReplicas(worst.online, requiredOf(worst));
    },
  };
}

function missingReplicas(online: number, required: number): string {
  return (
    `Payments are refused: ${required} Redis replicas must confirm them, but only ${online} ` +
    `${online === 1 ? 'is' : 'are'} connected. Start the missing replicas, or lower state.confirm.replicas and restart.`
  );
}

/** A replica that has just been synchronized counts once it has confirmed an offset: it takes up to a second to do so. */
const onlineReplica = /^slave\d+:.*\bstate=online,offset=[1-9]/gm;

const replicationIdOf = (report: string) => /^master_replid:(\w+)/m.exec(report)?.[1];
