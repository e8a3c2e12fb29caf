/**
 * Finds changes of the bank: kinds of deviations that its answers have not had before. The kinds, and what the bank has always done, are
 * those of all instances.
 */

import {
  type BaselineRow,
  baselineAnswers,
  type ContractReportTable,
  dayOf,
  type FoundKind,
} from '../store/contract-report.ts';
import type { Row } from '../store/database.ts';
import { createLatestRows } from '../store/latest-rows.ts';
import type { CheckScope, CountedChecks, CountedDeviation, CountedMessages } from './deviation-counts.ts';

interface ChangeFinderDependencies {
  readonly table: Pick<ContractReportTable, 'putBaselines' | 'putKinds'>;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  /** Called once on one instance for each change. */
  readonly onChange: (deviation: CountedDeviation) => void;
  /** As that of the report. */
  readonly onRefused: (thrown: unknown) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Kinds of deviations, and operations, that wait while the database is unavailable. Those that are lost are found on the next day. */
const maxWaiting = 1_000;

interface Found {
  readonly row: FoundKind;
  readonly deviation: CountedDeviation;
}

export function createChangeFinder({ table, instance, onChange, onRefused, now }: ChangeFinderDependencies) {
  const foundKinds = createLatestRows<Found>(storeKinds, maxWaiting, onRefused);
  const baselines = createLatestRows<BaselineRow>(table.putBaselines, maxWaiting, onRefused);
  /** How many answers this instance has checked, by operation: at most as many as a baseline needs. */
  const answers = new Map<string, number>();
  /** Kinds and operations of which a row is written, or waits. They begin again every day: a row that is not written expires. */
  let known = { day: dayOf(now()), keys: new Set<string>() };
  /** The rows of changes that this instance has announced. It reads them again on later days. */
  const announced = new Set<string>();

  function isKnown(key: string): boolean {
    if (known.keys.has(key)) return true;
    known.keys.add(key);
    return false;
  }

  function addKind(deviation: CountedDeviation): void {
    const { environment, hash, operation, path, rule, level, effect } = deviation;
    const key = keyOfKind({ environment, contract: hash, operation, path, rule });
    if (isKnown(key)) return;
    const kind = { environment, contract: hash, operation, path, rule, level, effect };
    foundKinds.set(key, { deviation, row: { ...kind, found_by: instance, found_at: now() } });
  }

  function addAnswers({ environment, hash, operation, count }: CountedMessages): void {
    const key = JSON.stringify([environment, hash, operation]);
    const before = answers.get(key) ?? 0;
    const after = Math.min(before + count, baselineAnswers);
    answers.set(key, after);
    if (isKnown(key) && after === before) return;
    baselines.set(key, { environment, contract: hash, operation, instance, answers: after });
  }

  /** The instance that has inserted a change announces it, also if the answer to the insertion was lost and it finds its row later. */
  async function storeKinds(kinds: readonly Found[]): Promise<void> {
    const stored = await table.putKinds(kinds.map(({ row }) => row));
    const byKey = new Map(stored.map((row) => [keyOfKind(row), row]));
    for (const { row, deviation } of kinds) {
      const key = keyOfKind(row);
      const { found_by: by, found_at: at, is_change: isChange } = byKey.get(key) ?? {};
      if (!isChange || by !== instance || announced.has(`${at} ${key}`)) continue;
      announced.add(`${at} ${key}`);
      onChange(deviation);
    }
  }

  return {
    add({ messages, deviations }: Pick<CountedChecks, 'messages' | 'deviations'>): void {
      const day = dayOf(now());
      if (day !== known.day) known = { day, keys: new Set() };
      for (const row of deviations) if (canBeChange(row)) addKind(row);
      for (const row of messages) if (isAnswer(row)) addAnswers(row);
    },
    /** @throws DatabaseError: the next call writes it again, and announces what is a change */
    async write(): Promise<void> {
      await foundKinds.write(); // first: the answers that have them are not among those that the bank has sent before
      await baselines.write();
    },
  };
}

/**
 * Whether a new kind of this deviation is a change of the bank. Deviations that every bank has are none, nor is the form of an error:
 * errors are rare, so that the baseline may contain none.
 */
const canBeChange = (deviation: CountedDeviation) =>
  isAnswer(deviation) &&
  deviation.level !== 'usual' &&
  deviation.path !== 'error' &&
  !deviation.path.startsWith('error/');

const isAnswer = ({ isOwn, direction }: CheckScope) => isOwn && direction === 'response';

const keyOfKind = ({ environment, contract, operation, path, rule }: Row) =>
  JSON.stringify([environment, contract, operation, path, rule]);
