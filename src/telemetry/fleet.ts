/**
 * The fleet: all instances that share the database. Each one stores a report every second, reads those of all others a moment later, and
 * keeps them in its memory, so that every instance can show all of them, also while the database is unavailable (ADR 123).
 */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type InstanceReport,
  listedForMs,
  type NewReports,
  type ReloadOutcome,
  type ReportTable,
  reloadAnswerMs,
  type StoredReloadRequest,
  type StoredReport,
} from './fleet-reports.ts';
import { createFleetSeconds } from './fleet-seconds.ts';
import type { SecondCounts, SecondStats } from './live-stats.ts';

/** An instance in the admin API. */
export interface InstanceView
  extends Omit<
    StoredReport,
    'startedAtMs' | 'reportedAtMs' | 'hasStopped' | 'from' | 'through' | 'clockDifferenceMs' | 'alerts'
  > {
  readonly name: string;
  /** `unknown`: this instance cannot read reports at the moment, or has just started. */
  readonly status: InstanceStatus;
  /** ISO 8601, UTC, on the clock of the database, like `lastSeen`. */
  readonly since: string;
  readonly lastSeen: string;
  readonly clockDifferenceMs: number;
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
  readonly onLost: (last: InstanceView) => void;
  /** It reports again. @param last the last report before the interruption */
  readonly onReturned: (last: InstanceView) => void;
}

/** The answer of an instance; `no answer`: not within 15 s. */
export interface ReloadAnswer extends Pick<InstanceView, 'name' | 'configurationHash'> {
  readonly outcome: ReloadOutcome['outcome'] | 'no answer';
  readonly errors: readonly string[];
  readonly restartRequired: readonly string[];
}

interface Member {
  report: StoredReport;
  status: InstanceStatus;
  /** By how much its clock is ahead of that of this instance. Seconds. */
  aheadSeconds: number;
}

/** Reports come every second. After this time without one, an instance is down. Milliseconds. */
const lostAfterMs = 2_500;
/** After this time without a read, this instance does not know the others. Milliseconds. */
const disconnectedAfterMs = 3_500;
/** A smaller difference of two clocks moves no second: it is measured with an error. Milliseconds. */
const maxClockErrorMs = 2_000;
/** How often answers to a request are looked for, in memory. Milliseconds. */
const answersReadMs = 100;

export type Fleet = ReturnType<typeof createFleet>;

/**
 * @param now milliseconds of a monotonic clock
 * @param wall milliseconds since 1970
 */
export function createFleet(
  table: Pick<ReportTable, 'write' | 'readSince' | 'requestReload' | 'endReload'>,
  ownId: string,
  events: FleetEvents,
  now: () => number = () => performance.now(),
  wall: () => number = Date.now,
) {
  const startedAtMs = now();
  const others = new Map<string, Member>();
  const seconds = createFleetSeconds(wall);
  /** The newest report of this instance, and the one that it has read, as the others have. */
  let latest: StoredReport | undefined;
  let own: StoredReport | undefined;
  let storedThrough = 0;
  let clockDifferenceMs = 0;
  let writing: Promise<void> | undefined;
  let reading: Promise<void> | undefined;
  let isStopped = false;
  let isChanged = false;
  let databaseNowMs: number | undefined;
  let storedAtMs = Number.NEGATIVE_INFINITY;
  /** When reports were read last while the own ones were stored, and since when this has been so without a gap. */
  let readAtMs = Number.NEGATIVE_INFINITY;
  let gaplessSinceMs = Number.NEGATIVE_INFINITY;
  let reloadRequest: StoredReloadRequest | undefined;
  let handledReload: string | undefined;

  async function store(all: readonly SecondCounts[], hasStopped: boolean): Promise<void> {
    if (!latest) return;
    const { startedAtMs: _, reportedAtMs: __, ...report } = latest;
    const through = report.through;
    const newSeconds = all.filter(({ at, requests }) => at > storedThrough && requests > 0);
    const [beganAtMs, ageMs] = [wall(), now() - startedAtMs];
    const databaseMs = await table.write({ ...report, hasStopped, ageMs, clockDifferenceMs }, newSeconds);
    storedThrough = through;
    storedAtMs = now();
    clockDifferenceMs = Math.round((beganAtMs + wall()) / 2 - databaseMs);
  }

  async function readReports(): Promise<void> {
    const found = await table.readSince(databaseNowMs);
    databaseNowMs = found.databaseNowMs;
    for (const report of found.reports) {
      if (report.id === ownId) own = report;
      else adopt(report);
      const ahead = aheadOf(report.id);
      seconds.add(report.id, { from: report.from - ahead, through: report.through - ahead }, []);
    }
    noteReloadRequest(found);
    for (const { instance, counts } of found.seconds)
      seconds.add(instance, undefined, [{ ...counts, at: counts.at - aheadOf(instance) }]);
    // If its own reports are not stored, those of the others may not be, either: while a standby is missing, commits wait, and reads do not.
    if (now() - storedAtMs > lostAfterMs) return;
    if (now() - readAtMs > lostAfterMs) {
      gaplessSinceMs = now();
      isChanged = true;
    }
    readAtMs = now();
    for (const [id, member] of others) judge(id, member, found.databaseNowMs);
  }

  /** A request from before the start is done: this instance has read its configuration later. */
  function noteReloadRequest({ databaseNowMs, reloadRequest: found }: NewReports): void {
    if (!found || found.id === handledReload) return;
    handledReload = found.id;
    if (databaseNowMs - found.requestedAtMs < now() - startedAtMs) reloadRequest = found;
  }

  const aheadOf = (id: string) => others.get(id)?.aheadSeconds ?? 0;

  function adopt(report: StoredReport): void {
    const member = others.get(report.id);
    const aheadMs = report.clockDifferenceMs - clockDifferenceMs;
    const known = member?.aheadSeconds ?? 0;
    const isSame = Math.abs(aheadMs - 1_000 * known) <= maxClockErrorMs;
    const aheadSeconds = isSame ? known : Math.round(aheadMs / 1_000);
    if (member) member.aheadSeconds = aheadSeconds;
    if (!member) others.set(report.id, { report, status: 'unknown', aheadSeconds });
    else if (report.reportedAtMs !== member.report.reportedAtMs) {
      if (member.status === 'down' && !report.hasStopped) events.onReturned(viewOf(member));
      if (member.status === 'down') member.status = 'unknown';
      member.report = report;
    }
  }

  function judge(id: string, member: Member, databaseMs: number): void {
    const { reportedAtMs, hasStopped } = member.report;
    const next = statusOf(member, databaseMs - reportedAtMs);
    if (next !== member.status) isChanged = true;
    if (next === 'down' && member.status !== 'down') events.onLost(viewOf({ ...member, status: next }));
    member.status = next;
    if ((hasStopped || next === 'down') && databaseMs - reportedAtMs > listedForMs) others.delete(id);
  }

  function statusOf({ report, status }: Member, ageMs: number): InstanceStatus {
    if (report.hasStopped) return 'stopped';
    if (ageMs <= lostAfterMs) return 'up';
    // After an outage of the database, the reports of all others are old.
    return status === 'down' || now() - gaplessSinceMs > lostAfterMs ? 'down' : 'unknown';
  }

  /** Reports from before: those of several calls at the same time are read once. Never rejects. */
  function read(): Promise<void> {
    reading ??= readReports()
      .catch(() => {}) // the database is unavailable: the next call tries again
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }

  function check(): void {
    const passedMs = now() - readAtMs;
    const running = [...others.values()].filter(({ status }) => status === 'up');
    if (passedMs > disconnectedAfterMs)
      for (const member of running) {
        member.status = 'unknown';
        isChanged = true;
      }
    else if (
      running.some(({ report }) => (databaseNowMs ?? 0) - report.reportedAtMs + passedMs > lostAfterMs)
    )
      void read();
  }

  const isComplete = () => now() - readAtMs <= disconnectedAfterMs;
  const shownOwn = () => (isComplete() ? own : undefined) ?? latest;

  const reportOf = (id: string) => (id === ownId ? shownOwn() : others.get(id)?.report);

  function hasEnded(id: string): boolean {
    const { status } = others.get(id) ?? {};
    return status === 'down' || status === 'stopped';
  }

  return {
    /**
     * Stores the report of this instance; to be called every second.
     *
     * @param all the seconds that have ended, oldest first, without gaps
     */
    publish(report: InstanceReport, all: readonly SecondCounts[]): void {
      if (isStopped) return;
      const [from, through] = [all[0]?.at ?? 0, all.at(-1)?.at ?? 0];
      const nowMs = wall();
      latest = {
        ...{ ...report, id: ownId, from, through, clockDifferenceMs, hasStopped: false },
        startedAtMs: latest?.startedAtMs ?? nowMs,
        reportedAtMs: nowMs,
      };
      seconds.add(
        ownId,
        latest,
        all.filter(({ requests }) => requests > 0),
      );
      writing ??= store(all, false)
        .catch(() => {}) // the database is unavailable: the next report contains these seconds as well
        .finally(() => {
          writing = undefined;
        });
    },

    /** Reads the reports of all instances; to be called every second, when they are stored. Never rejects. */
    read,

    /** A request of an operator that this instance has not seen before. */
    takeReloadRequest(): StoredReloadRequest | undefined {
      const taken = reloadRequest;
      reloadRequest = undefined;
      return taken;
    },

    /**
     * Asks all instances that run to load their configuration again, and waits for their answers.
     *
     * @returns `undefined` while they may still answer another request. @throws DatabaseError
     */
    async reloadAll(who: string, reason: string | undefined): Promise<readonly ReloadAnswer[] | undefined> {
      const id = await table.requestReload(who, reason);
      if (id === undefined) return undefined;
      const running = [...others].filter(([, { status }]) => status === 'up').map(([other]) => other);
      const asked = [ownId, ...running];
      const askedAtMs = now();
      for (;;) {
        const reports = asked.flatMap((instance) => reportOf(instance) ?? []);
        const silent = reports.filter(({ reload }) => reload?.id !== id);
        if (silent.length === 0) await table.endReload(id).catch(() => {}); // the next one may begin 15 s after this one
        if (silent.every((report) => hasEnded(report.id)) || now() - askedAtMs > reloadAnswerMs)
          return reports
            .filter(({ hasStopped }) => !hasStopped)
            .map((report) => answerOf(report, id))
            .toSorted(byName);
        await sleep(answersReadMs);
      }
    },

    /** All instances of the last hour, by name. */
    instances(): readonly InstanceView[] {
      check();
      const report = shownOwn();
      const all = [...others.values(), ...(report ? [{ report, status: 'up' as const }] : [])];
      return all.map(viewOf).toSorted(byName);
    },

    /** The last five minutes of all instances together; a second that changes is a new object. */
    seconds(): readonly SecondStats[] {
      const running = [...others].filter(([, { status }]) => status === 'up').map(([id]) => id);
      return seconds.recent([ownId, ...running]);
    },

    /** Of all instances, in the last so many seconds: at most 1,800; and for how long there was none. */
    initiations: seconds.initiations,
    quietSeconds: seconds.quietSeconds,

    /** What the other instances that run have reported. */
    alertsOfOthers: (): readonly { readonly name: string; readonly alerts: StoredReport['alerts'] }[] =>
      [...others.values()]
        .filter(({ status }) => status === 'up')
        .map(({ report: { id: name, alerts } }) => ({ name, alerts })),

    scope: (): FleetScope => ({ isComplete: isComplete(), why: isComplete() ? null : incomplete }),

    /**
     * Looks for instances that no longer report; to be called several times a second.
     *
     * @returns whether the status of one has changed since the last call
     */
    check(): boolean {
      check();
      const result = isChanged;
      isChanged = false;
      return result;
    },

    /** Stores that this instance has stopped. Never rejects. */
    async stop(): Promise<void> {
      if (isStopped || !latest) return;
      isStopped = true;
      await writing;
      latest = { ...latest, ready: false, reasons: ['stopped'] };
      await store([], true).catch(() => {});
    },
  };
}

const incomplete =
  'This instance cannot exchange reports with the others, because the database is unavailable. The figures are its own.';

const timeText = (ms: number) => new Date(ms).toISOString();

function viewOf({ report, status }: Pick<Member, 'report' | 'status'>): InstanceView {
  const { startedAtMs, reportedAtMs, hasStopped: _, from: __, through: ___, alerts: ____, ...shown } = report;
  const lastSeen = timeText(reportedAtMs);
  const view = { ...shown, name: report.id, status, since: timeText(startedAtMs), lastSeen };
  if (status === 'up' || status === 'stopped') return view;
  const reason = status === 'down' ? `no report since ${lastSeen}` : `last report at ${lastSeen}`;
  return { ...view, ready: false, reasons: [reason] };
}

function answerOf({ id: name, configurationHash, reload }: StoredReport, id: string): ReloadAnswer {
  const { outcome, errors, restartRequired } =
    reload?.id === id ? reload : { outcome: 'no answer' as const, errors: [], restartRequired: [] };
  return { name, outcome, errors, restartRequired, configurationHash };
}

const byName = <Named extends { readonly name: string }>(one: Named, other: Named) =>
  one.name.localeCompare(other.name);
