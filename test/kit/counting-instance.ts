/** Instances that count checked messages, and write them to the report of the contract guard. */

import type { Deviation } from '../../src/contract/deviation.ts';
import {
  type CheckedMessage,
  type CheckScope,
  type CountedDeviation,
  createDeviationCounts,
} from '../../src/contract-guard/deviation-counts.ts';
import { createReportReader } from '../../src/contract-guard/read-report.ts';
import { createReportWriter } from '../../src/contract-guard/write-report.ts';
import { createContractReportTable, dayMs } from '../../src/store/contract-report.ts';
import type { Database } from '../../src/store/database.ts';

export const keepFor = () => 30 * dayMs;
/** Of a request. */
export const required: Deviation = {
  level: 'harmful',
  rule: 'required',
  path: 'body/creditorName',
  effect: 'refused',
};
/** Of an answer. */
export const missing: Deviation = { ...required, effect: 'client-may-fail' };
export const usual: Deviation = { ...required, level: 'usual', rule: 'format', effect: 'none' };

export type Counted = CheckScope & CheckedMessage;

/** A request that was checked. */
export const message = (changes: Partial<Counted> = {}): Counted => ({
  environment: 'sandbox',
  hash: 'hash-1',
  isOwn: true,
  direction: 'request',
  operation: 'initiatePayment',
  client: 'shop-1',
  requestId: 'request-1',
  atMs: 100 * dayMs,
  ...changes,
});
export const answered = (changes: Partial<Counted> = {}) => message({ direction: 'response', ...changes });

/** @param clock shared by the instances of a test */
export function startCounting(database: Database, clock = { nowMs: 100 * dayMs + 3_600_000 }) {
  const { add, ...counters } = createDeviationCounts();
  const counts = {
    ...counters,
    add: (counted: Counted, deviations: readonly Deviation[]) => add(counted, counted, deviations),
  };
  const changes: CountedDeviation[] = [];
  const now = () => clock.nowMs;
  const table = createContractReportTable(database);
  const writer = createReportWriter({
    onRefused(thrown) {
      throw thrown;
    },
    table,
    instance: `instance-${Math.random()}`,
    take: counts.take,
    onChange: (deviation) => void changes.push(deviation),
    now,
  });
  const reader = createReportReader({ table, flush: writer.flush, keepFor, now });
  return { clock, counts, changes, writer, reader, table };
}

/** Answers with these deviations, written to the report. @returns whether everything is stored */
export function countAnswers(
  { counts, writer }: ReturnType<typeof startCounting>,
  times: number,
  deviations: readonly Deviation[],
): Promise<boolean> {
  for (let time = 0; time < times; time++) counts.add(answered(), deviations);
  return writer.flush();
}
