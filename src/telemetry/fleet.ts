/**
 * The fleet: all instances that share the state. Each one publishes a report every second, and keeps the last one of all others in
 * its memory, so that every instance can show all of them, also while the shared state is unavailable (ADR 96).
 */

import type { State } from '../state/ports.ts';
import {
  type FleetMessage,
  type InstanceReport,
  parseMessage,
  type RosterEntry,
  serializeMessage,
} from './fleet-messages.ts';
import { createFleetRoster } from './fleet-roster.ts';
import { createFleetSeconds } from './fleet-seconds.ts';
import type { SecondCounts, SecondStats } from './live-stats.ts';

export interface Fleet {
  /**
   * Publishes the report of this instance; to be called every second.
   *
   * @param seconds those that have ended, oldest first, without gaps
   */
  publish(report: InstanceReport, seconds: readonly SecondCounts[]): void;
  /** All instances of the last hour, by name. */
  instances(): readonly InstanceView[];
  /** The last five minutes of all instances together; a second that changes is a new object. */
  seconds(): readonly SecondStats[];
  scope(): FleetScope;
  /**
   * Looks for instances that no longer report; to be called several times a second.
   *
   * @returns whether the status of one has changed since the last call
   */
  check(): boolean;
  /** Publishes that this instance has stopped. Never rejects. */
  stop(): Promise<void>;
}

/** An instance in the admin API. */
export interface InstanceView extends Omit<InstanceReport, 'at'> {
  /** `unknown`: this instance cannot receive reports at the moment, or has just started. */
  readonly status: InstanceStatus;
  /** When it sent its last report: ISO 8601, UTC, on its own clock. */
  readonly lastSeen: string;
}

type InstanceStatus = 'up' | 'down' | 'stopped' | 'unknown';

/** Which instances the figures include. */
export interface FleetScope {
  readonly isComplete: boolean;
  /** Why they are those of this instance only. */
  readonly why: string | null;
}

export interface FleetEvents {
  /** An instance no longer reports. Every other instance notices it. @param last its last report */
  readonly onLost: (last: InstanceReport) => void;
  /** It reports again. @param last the last report before the interruption */
  readonly onReturned: (last: InstanceReport) => void;
}

interface FleetDependencies {
  readonly state: Pick<State, 'pubsub' | 'journals'>;
  readonly ownId: string;
  readonly events: FleetEvents;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Milliseconds since 1970. */
  readonly wall?: () => number;
}

interface Member {
  report: InstanceReport;
  status: InstanceStatus;
  /** When its last message arrived, on the monotonic clock; `undefined` if only the roster knows it. */
  receivedAtMs: number | undefined;
}

const channel = 'fleet';

/** Reports come every second. After this time without one, an instance is down. Milliseconds. */
const lostAfterMs = 2_500;
/**
 * An own message that arrives so much later than the last one of another instance proves that the messages of the other one
 * could have arrived as well. Milliseconds.
 */
const proofAfterMs = 1_200;
/** After this time without an own message, this instance does not receive the others either. Milliseconds. */
const disconnectedAfterMs = 3_500;
/** How long an instance that has ended is listed. Milliseconds. */
const listedForMs = 3_600_000;
const rosterEveryMs = 300_000;
/** More than any installation has; bounds the memory if instances start and crash all the time. */
const maxMembers = 1_000;

export function createFleet({
  state: { pubsub, journals },
  ownId,
  events,
  now = () => performance.now(),
  wall = Date.now,
}: FleetDependencies): Fleet {
  const members = new Map<string, Member>();
  const seconds = createFleetSeconds(wall);
  const roster = createFleetRoster(journals, wall);
  let isStopped = false;
  let isChanged = false;
  /** When the last own message arrived, and since when own messages have arrived without an interruption. */
  let echoAtMs = Number.NEGATIVE_INFINITY;
  let connectedSinceMs = Number.NEGATIVE_INFINITY;
  let isRosterRead = false;
  let rosterDueAtMs = Number.NEGATIVE_INFINITY;
  let publishedThrough = 0;
  let wantsSeconds = true;
  let isAskedForSeconds = false;

  const unsubscribe = pubsub.subscribe(channel, (text) => {
    const message = parseMessage(text);
    if (!message || isStopped) return;
    if (message.report.id === ownId) onOwnMessage(message);
    else onMessage(message);
  });

  function onOwnMessage(message: FleetMessage): void {
    if (message.kind === 'stopped') return;
    const isInterrupted = now() - echoAtMs > lostAfterMs;
    if (isInterrupted) {
      connectedSinceMs = now();
      isRosterRead = false;
      isChanged = true;
    }
    wantsSeconds = (wantsSeconds || isInterrupted) && !message.wantsSeconds;
    echoAtMs = now();
    if (!isRosterRead) readRoster();
  }

  function onMessage(message: FleetMessage): void {
    const { report } = message;
    const member = members.get(report.id);
    if (member?.status === 'stopped' || (!member && !makeRoom())) return;
    const next = message.kind === 'stopped' ? 'stopped' : 'up';
    if (member?.status === 'down' && next === 'up') events.onReturned(member.report);
    if (member?.status !== next) isChanged = true;
    members.set(report.id, { report, status: next, receivedAtMs: now() });
    if (message.kind === 'stopped') return;
    seconds.add(report.id, message);
    isAskedForSeconds ||= message.wantsSeconds;
  }

  /** Removes the instance that ended first, if there are too many. @returns false if all of them run */
  function makeRoom(): boolean {
    if (members.size < maxMembers) return true;
    const ended = [...members].filter(([, { status }]) => status === 'down' || status === 'stopped');
    const [first] = ended.toSorted(([, one], [, other]) => one.report.at.localeCompare(other.report.at));
    return first !== undefined && members.delete(first[0]);
  }

  /** After the start, and after each interruption: others may have ended without a message that this instance received. */
  function readRoster(): void {
    isRosterRead = true;
    roster.read().then(
      (entries) => {
        for (const entry of entries) applyRosterEntry(entry);
      },
      () => {
        isRosterRead = false; // the next own message tries again
      },
    );
  }

  function applyRosterEntry({ report, status }: RosterEntry): void {
    const member = members.get(report.id);
    if (report.id === ownId || (member?.receivedAtMs ?? Number.NEGATIVE_INFINITY) > connectedSinceMs) return;
    if (member && member.status !== 'unknown') return;
    if (!member && !makeRoom()) return;
    const known = status === 'up' ? 'unknown' : status;
    members.set(report.id, { report, status: known, receivedAtMs: member?.receivedAtMs });
    isChanged = true;
  }

  function check(): void {
    const isConnected = now() - echoAtMs <= disconnectedAfterMs;
    for (const [id, member] of members) {
      if (id === ownId) continue;
      if (wall() - Date.parse(member.report.at) > listedForMs && member.status !== 'up') {
        members.delete(id);
        isChanged = true;
      } else if (member.status === 'up' && !isConnected) {
        member.status = 'unknown';
        isChanged = true;
      } else if ((member.status === 'up' || member.status === 'unknown') && isSilent(member)) {
        member.status = 'down';
        isChanged = true;
        events.onLost(member.report);
        roster.add({ status: 'down', report: member.report }).catch(() => {}); // every other instance writes it as well
      }
    }
  }

  /** Whether messages of this instance arrive, and those of the other one do not. */
  function isSilent({ receivedAtMs = Number.NEGATIVE_INFINITY }: Member): boolean {
    const sinceMs = Math.max(receivedAtMs, connectedSinceMs);
    return now() - sinceMs > lostAfterMs && echoAtMs - sinceMs > proofAfterMs;
  }

  function addToRoster(report: InstanceReport): void {
    if (now() < rosterDueAtMs) return;
    rosterDueAtMs = now() + rosterEveryMs;
    roster.add({ status: 'up', report }).catch(() => {
      rosterDueAtMs = Number.NEGATIVE_INFINITY; // the next report tries again
    });
  }

  return {
    publish(report, all) {
      if (isStopped) return;
      const [from = 0, through = 0] = [all[0]?.at, all.at(-1)?.at];
      const withRequests = all.filter(({ requests }) => requests > 0);
      members.set(ownId, { report, status: 'up', receivedAtMs: undefined });
      seconds.add(ownId, { from, through, seconds: withRequests });
      const isAsked = isAskedForSeconds;
      isAskedForSeconds = false;
      const sent = withRequests.filter(({ at }) => isAsked || at > publishedThrough);
      const message = { kind: 'running', report, from, through, seconds: sent, wantsSeconds } as const;
      pubsub.publish(channel, serializeMessage(message)).then(
        () => {
          publishedThrough = through;
        },
        () => {
          isAskedForSeconds ||= isAsked; // the next message contains these seconds as well
        },
      );
      addToRoster(report);
    },
    instances() {
      check();
      return Array.from(members.values(), viewMember).toSorted(byName);
    },
    seconds() {
      const running = [...members].filter(([, { status }]) => status === 'up').map(([id]) => id);
      return seconds.recent(running);
    },
    scope() {
      const isComplete = now() - echoAtMs <= disconnectedAfterMs;
      return { isComplete, why: isComplete ? null : incomplete };
    },
    check() {
      check();
      const result = isChanged;
      isChanged = false;
      return result;
    },
    async stop() {
      const report = members.get(ownId)?.report;
      if (isStopped || !report) return;
      isStopped = true;
      unsubscribe();
      const last = { ...report, at: new Date(wall()).toISOString(), ready: false, reasons: ['stopped'] };
      const message = { kind: 'stopped', report: last } as const;
      await Promise.allSettled([
        pubsub.publish(channel, serializeMessage(message)),
        roster.add({ status: 'stopped', report: last }),
      ]);
    },
  };
}

const incomplete =
  'This instance receives no reports of the others, because Redis is unavailable. The figures are its own.';

function viewMember({ report: { at, ...report }, status }: Member): InstanceView {
  if (status === 'up' || status === 'stopped') return { ...report, status, lastSeen: at };
  const reason = status === 'down' ? `no report since ${at}` : `last report at ${at}`;
  return { ...report, ready: false, reasons: [reason], status, lastSeen: at };
}

const byName = (one: InstanceView, other: InstanceView) =>
  one.name.localeCompare(other.name) || one.id.localeCompare(other.id);
