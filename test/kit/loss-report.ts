/** The results of a run of a loss: what the bank, the TPP systems and the operators saw. */

import { type Answer, type PaymentFleet, paidTwice } from './payment-fleet.ts';
import type { ObservedReport } from './state-reports.ts';

export interface LossReport {
  /** The X-Request-IDs with which the bank received more than one initiation. */
  readonly paidTwice: readonly string[];
  /** Every kind of answer that no TPP may receive, with the number of its occurrences. */
  readonly forbiddenAnswers: Readonly<Record<string, number>>;
  /** New payments that were executed after the loss although an instance was missing and no operator had accepted that. */
  readonly executedWhileMissing: number;
  /** New payments that were refused from the beginning of the loss until every instance reported `ok` again. */
  readonly refusedPayments: number;
  /** From the beginning of the loss to the last refusal of a new payment, in milliseconds; 0 if none was refused. */
  readonly refusedForMs: number;
  /** Repeats that were refused in the same time. */
  readonly refusedRepeats: number;
  /** What the instances reported in `GET /api/state` during the run, each change once. */
  readonly reports: readonly (readonly ObservedReport[])[];
  /** The body of `GET /api/audit` at the end. */
  readonly audit: string;
  /** The outcomes of the last repeats, with the number of their occurrences. */
  readonly lastOutcomes: Readonly<Record<string, number>>;
  /** The bodies of refusals after the loss had ended, each once. */
  readonly refusalTexts: readonly string[];
}

/** When the steps of a run happened, in milliseconds of `performance.now()`. */
export interface LossTimes {
  readonly lossBeganAtMs: number;
  readonly lossEndedAtMs: number;
  /** When the first instance resumed, or an operator accepted that it is gone; `undefined` if it ran. */
  readonly completeAtMs: number | undefined;
}

interface Observations {
  readonly lastOutcomes: readonly string[];
  readonly reports: LossReport['reports'];
  readonly audit: string;
  /** The instance that was killed: its connections break. */
  readonly killed: number | undefined;
}

export function reportOn(
  { answers, bank }: PaymentFleet,
  { lossBeganAtMs, lossEndedAtMs, completeAtMs }: LossTimes,
  { lastOutcomes, reports, audit, killed }: Observations,
): LossReport {
  const firstAttempts = new Set(firstOfEach(answers));
  const isOkAtMs = Math.max(...reports.map((ofInstance) => endOfLoss(ofInstance, lossBeganAtMs)));
  const refused = answers.filter(
    ({ outcome, sentAtMs, endedAtMs }) =>
      outcome === refusal && endedAtMs > lossBeganAtMs && sentAtMs < isOkAtMs,
  );
  const refusedPayments = refused.filter((answer) => firstAttempts.has(answer));
  const lastRefusalMs = Math.max(lossBeganAtMs, ...refusedPayments.map(({ endedAtMs }) => endedAtMs));
  const isForbidden = ({ outcome, instance }: Answer) =>
    !allowedOutcomes.has(outcome) && !(outcome === 'no answer' && instance === killed);
  return {
    paidTwice: paidTwice(bank),
    forbiddenAnswers: countEach(
      answers.filter(isForbidden).map(({ outcome, text }) => `${outcome}: ${text}`),
    ),
    executedWhileMissing: answers.filter(
      (answer) =>
        completeAtMs !== undefined &&
        firstAttempts.has(answer) &&
        answer.sentAtMs > lossEndedAtMs &&
        answer.endedAtMs < completeAtMs &&
        answer.outcome === '201',
    ).length,
    refusedPayments: refusedPayments.length,
    refusedForMs: lastRefusalMs - lossBeganAtMs,
    refusedRepeats: refused.length - refusedPayments.length,
    reports,
    audit,
    lastOutcomes: countEach(lastOutcomes),
    refusalTexts: [
      ...new Set(refused.filter(({ sentAtMs }) => sentAtMs > lossEndedAtMs).map(({ text }) => text)),
    ],
  };
}

/** When an instance reported for the last time that the state is `ok` again; `Infinity` if it has not reported a loss. */
function endOfLoss(reports: readonly ObservedReport[], lossBeganAtMs: number): number {
  const last = reports.at(-1);
  return last?.status === 'ok' && last.atMs > lossBeganAtMs ? last.atMs : Number.POSITIVE_INFINITY;
}

const refusal = '503 STATE_UNAVAILABLE';

const allowedOutcomes: ReadonlySet<string> = new Set([
  '201',
  '201 replayed',
  '409 DUPLICATE_IN_FLIGHT',
  '409 DUPLICATE_IN_DOUBT',
  refusal,
  '504 OUTCOME_UNKNOWN',
]);

/** The answer to the attempt of each payment that was sent first. */
function firstOfEach(answers: readonly Answer[]): readonly Answer[] {
  const first = new Map<string, Answer>();
  for (const answer of answers) {
    const known = first.get(answer.requestId);
    if (!known || answer.sentAtMs < known.sentAtMs) first.set(answer.requestId, answer);
  }
  return [...first.values()];
}

function countEach(values: readonly string[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return Object.fromEntries(counts);
}
