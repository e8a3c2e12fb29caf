/**
 * Writes the counts of this instance to the report of all instances: what it has counted on each day, as totals. While the database is
 * unavailable, they wait in memory.
 */

import {
  type CheckRow,
  type ContractReportTable,
  type DeviationRow,
  dayOf,
  type SkipRow,
} from '../store/contract-report.ts';
import { createLatestRows } from '../store/latest-rows.ts';
import type {
  CheckScope,
  CountedChecks,
  CountedDeviation,
  CountedMessages,
  SkippedMessages,
} from './deviation-counts.ts';
import { createChangeFinder } from './find-changes.ts';

export interface ReportWriter {
  /** Writes everything that was counted before the call. Never rejects. @returns whether everything is stored */
  flush(): Promise<boolean>;
}

interface ReportWriterDependencies {
  readonly table: ContractReportTable;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  readonly take: () => CountedChecks | undefined;
  /** Called once on one instance for each new kind of deviation in the answers of an environment. */
  readonly onChange: (deviation: CountedDeviation) => void;
  /** Called if the database does not accept a row, which is not counted. */
  readonly onRefused: (thrown: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The most different deviations that an instance adds to a day, by client: harmful and other ones of requests, and of answers, each. */
const maxPerDay = 1_000;
/** Rows of each table that wait while the database is unavailable. A row that is lost is written when its total changes again. */
const maxWaiting = 20_000;

export function createReportWriter({
  table,
  instance,
  take,
  onChange,
  onRefused,
  now = Date.now,
}: ReportWriterDependencies): ReportWriter {
  const deviationRows = createLatestRows<DeviationRow>(table.putDeviations, maxWaiting, onRefused);
  const checkRows = createLatestRows<CheckRow>(table.putChecks, maxWaiting, onRefused);
  const skipRows = createLatestRows<SkipRow>(table.putSkips, maxWaiting, onRefused);
  const changes = createChangeFinder({ table, instance, onChange, onRefused, now });
  let today = startDay(dayOf(now()));
  /** Of the next new row: it never begins again, because the clock may be set back to a day that has rows. */
  let nextNumber = 0;
  let flushing: Promise<boolean> | undefined;

  function count(checks: CountedChecks): void {
    const day = dayOf(now());
    if (day !== today.day) today = startDay(day);
    for (const row of checks.messages) countMessages(row);
    for (const row of checks.deviations) countDeviation(row);
    for (const row of checks.skipped) countSkipped(row);
    changes.add(checks);
  }

  function countDeviation(deviation: CountedDeviation): void {
    const { operation, path, rule, level, effect, alsoRefusedBy = null, client } = deviation;
    const scope = scopeRow(deviation);
    const key = keyOf({ ...scope, operation, path, rule, level, effect, alsoRefusedBy, client });
    if (!hasRoom(deviation, key)) {
      countSkipped({ ...deviation, reason: 'not-counted' });
      return;
    }
    const { number, messages, firstMs } = addTo(today.deviations, key, deviation.count, deviation.firstMs);
    deviationRows.set(String(number), {
      ...{ day: today.day, instance, number },
      ...scope,
      ...{ operation, path, rule, level, effect },
      also_refused_by: alsoRefusedBy,
      client,
      messages,
      first_at: firstMs,
      last_at: deviation.lastMs,
      last_request_id: deviation.requestId,
    });
  }

  /** Whether the day has room for a deviation. Other ones cannot take the places of harmful ones. */
  function hasRoom({ direction, level }: CountedDeviation, key: string): boolean {
    if (today.deviations.has(key)) return true;
    const places = `${direction} ${level === 'harmful' ? 'harmful' : 'other'}`;
    const taken = today.placesTaken.get(places) ?? 0;
    if (taken >= maxPerDay) return false;
    today.placesTaken.set(places, taken + 1);
    return true;
  }

  function countMessages(checked: CountedMessages): void {
    const { operation, client } = checked;
    const scope = scopeRow(checked);
    const key = keyOf({ ...scope, operation, client });
    const { number, messages, firstMs } = addTo(today.checks, key, checked.count, checked.firstMs);
    checkRows.set(String(number), {
      ...{ day: today.day, instance, number },
      ...scope,
      ...{ operation, client, messages, first_at: firstMs },
    });
  }

  function countSkipped({ environment, direction, reason, count }: SkippedMessages): void {
    const key = keyOf({ environment, direction, reason });
    const { number, messages } = addTo(today.skips, key, count);
    skipRows.set(String(number), {
      ...{ day: today.day, instance, number },
      ...{ environment, direction, reason, messages },
    });
  }

  function addTo(totals: Map<string, Total>, key: string, count: number, firstMs = 0): Total {
    const known = totals.get(key) ?? { number: nextNumber++, messages: 0, firstMs };
    const total = {
      number: known.number,
      messages: known.messages + count,
      firstMs: Math.min(known.firstMs, firstMs),
    };
    totals.set(key, total);
    return total;
  }

  async function store(): Promise<boolean> {
    const counted = take();
    if (counted) count(counted);
    try {
      await deviationRows.write();
      await checkRows.write();
      await skipRows.write();
      await changes.write();
      return true;
    } catch {
      return false; // the database is unavailable: the next flush tries again, and a repeated write has no effect
    }
  }

  return {
    async flush() {
      await flushing;
      flushing ??= store().finally(() => {
        flushing = undefined;
      });
      return flushing;
    },
  };
}

/** What this instance has counted on a day. */
const startDay = (day: number) => ({
  day,
  deviations: new Map<string, Total>(),
  checks: new Map<string, Total>(),
  skips: new Map<string, Total>(),
  /** Different deviations, by direction and level. */
  placesTaken: new Map<string, number>(),
});

interface Total {
  /** Of its row on this instance. */
  readonly number: number;
  readonly messages: number;
  readonly firstMs: number;
}

const scopeRow = ({ environment, hash, isOwn, direction }: CheckScope) => ({
  environment,
  contract: hash,
  is_own: isOwn,
  direction,
});

const keyOf = (names: Readonly<Record<string, string | boolean | null>>) =>
  JSON.stringify(Object.values(names));
