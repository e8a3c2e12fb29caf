/** What must hold for the messages of a run, and how long they took. */

import { percentile } from '../measure/statistics.ts';
import type { Arrival } from './endpoints.ts';
import { type BankPayment, finalStatusOf, type ProgressingBank } from './progressing-bank.ts';
import type { Initiated } from './tpp-systems.ts';

export interface Subscribed extends Initiated {
  readonly payment: BankPayment;
}

export const hasAccepted = ({ status }: Arrival): boolean =>
  status !== undefined && status >= 200 && status < 300;

/** Whether the endpoint has accepted the final status. */
export const isComplete = (arrivals: readonly Arrival[] = []): boolean =>
  arrivals.some((arrival) => arrival.body.final && hasAccepted(arrival));

/** The messages of each subscription, in the order of their arrival. */
export const byNumber = (arrivals: readonly Arrival[]): ReadonlyMap<number, readonly Arrival[]> =>
  Map.groupBy(arrivals, ({ number }) => number);

/** @returns a sentence for each violation */
export function faultsOf(
  subscriptions: readonly Subscribed[],
  arrivals: readonly Arrival[],
): readonly string[] {
  const grouped = byNumber(arrivals);
  const invalid = arrivals.flatMap(({ fault, number }) =>
    fault ? [`a message of ${number} is not valid: ${fault}`] : [],
  );
  return [...invalid, ...subscriptions.flatMap((one) => faultsOfOne(one, grouped.get(one.number) ?? []))];
}

function faultsOfOne({ number, kind, payment }: Subscribed, arrivals: readonly Arrival[]): readonly string[] {
  const faults: string[] = [];
  const report = (fault: string) => faults.push(`${kind.name} ${number}: ${fault}`);
  const finals = new Set(arrivals.filter(({ body }) => body.final).map(({ id }) => id));
  if (kind.accepts && !isComplete(arrivals)) report('the final status was not delivered');
  if (finals.size > 1) report('the final status has several ids');
  let [newest] = arrivals;
  let isGone = false;
  for (const arrival of arrivals) {
    const { body } = arrival;
    if (body.paymentId !== payment.id) report(`a message is of payment ${body.paymentId}`);
    if (body.final !== (body.transactionStatus === finalStatusOf(payment))) report('final is wrong');
    if (newest && arrival !== newest) {
      const isSame = arrival.id === newest.id;
      if (isSame && JSON.stringify(body) !== JSON.stringify(newest.body)) report('an id has two bodies');
      if (!isSame && body.sequence <= newest.body.sequence)
        report(`sequence ${body.sequence} follows ${newest.body.sequence}`);
      if (!isSame && newest.body.final) report('a message follows the final one');
      if (!isSame && isGone) report('a message follows 410');
    }
    isGone ||= arrival.status === 410;
    newest = arrival;
  }
  return faults;
}

/** How long the first attempt of a message took, at an endpoint that is always there. */
export interface DeliveryDelay {
  /** Of the message. */
  readonly number: number;
  /** When the bank answered with the status for the first time: milliseconds of `performance.now()`. */
  readonly shownAtMs: number;
  /** From then to the arrival. */
  readonly delayMs: number;
}

export function deliveryDelays(
  subscriptions: readonly Subscribed[],
  arrivals: readonly Arrival[],
): readonly DeliveryDelay[] {
  const grouped = byNumber(arrivals);
  return subscriptions
    .filter(({ kind }) => kind.name === 'works')
    .flatMap(({ number, payment }) => {
      const first = new Map((grouped.get(number) ?? []).toReversed().map((one) => [one.id, one]));
      return [...first.values()].flatMap(({ body, atMs }) => {
        const shownAtMs = payment.shownMs.get(body.transactionStatus);
        return shownAtMs === undefined ? [] : { number, shownAtMs, delayMs: atMs - shownAtMs };
      });
    });
}

/** Times from the end of an instance to the next attempt of another one, for the messages that the first one was sending. */
export function deliveryTakeoversMs(arrivals: readonly Arrival[], endedAtMs: number): readonly number[] {
  const grouped = byNumber(arrivals);
  return arrivals
    .filter(({ kind, status }) => kind === 'slow' && status === undefined)
    .filter(({ endMs }) => isAtEnd(endMs, endedAtMs))
    .map(({ number }) => {
      const next = grouped.get(number)?.find(({ atMs }) => atMs > endedAtMs);
      return (next?.atMs ?? Number.POSITIVE_INFINITY) - endedAtMs;
    });
}

/** As `deliveryTakeoversMs`, for the reads of statuses. */
export const pollTakeoversMs = ({ lost }: ProgressingBank, endedAtMs: number): readonly number[] =>
  lost
    .filter(({ atMs }) => isAtEnd(atMs, endedAtMs))
    .map(({ payment }) => {
      const next = payment.readsMs.find((atMs) => atMs > endedAtMs);
      return (next ?? Number.POSITIVE_INFINITY) - endedAtMs;
    });

/** The connections of a killed process end at once; this process may notice it later. Milliseconds. */
const connectionsEndWithinMs = 3_000;

const isAtEnd = (atMs: number | undefined, endedAtMs: number) =>
  atMs !== undefined && atMs >= endedAtMs && atMs - endedAtMs < connectionsEndWithinMs;

/** p50, p99 and the longest, as text. */
export function quantiles(timesMs: readonly number[]): string {
  if (timesMs.length === 0) return 'none';
  const text = [0.5, 0.99, 1].map((part) => `${Math.round(percentile(timesMs, part))}`);
  return `${text.join(', ')} ms (${timesMs.length})`;
}
