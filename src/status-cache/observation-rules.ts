/**
 * How an observation changes the cached payment, so that the cache is never behind what a TPP has seen (ADR 78).
 *
 * An observation is what a response of the bank says about a payment. It is recorded before the TPP receives the response,
 * and starts a new generation if the payment does not contain it yet. So if the generation has not changed since a request
 * to the bank began, no TPP has received another status than the recorded one since then. This needs no clock.
 */

import { randomUUID } from 'node:crypto';
import type { CachedPayment, CachedResponse } from './cached-payment.ts';

/** The observation of a status read, and the response itself. */
export interface StatusRead {
  /** Equal for equal statuses. */
  readonly statusHash: string;
  /** Whether the payment keeps this status for ever. */
  readonly isFinal: boolean;
  /** Milliseconds since 1970. */
  readonly observedAtMs: number;
  /** The response by its variant, if it may be stored; otherwise empty. */
  readonly responses: Readonly<Record<string, CachedResponse>>;
}

/** The observation of another operation. */
export type Observation =
  | { readonly what: 'status'; readonly statusHash: string; readonly observedAtMs: number }
  | { readonly what: 'authorisation-ended'; readonly authorisation: string };

export type RecordOutcome =
  /** No TPP has received another status from a request that began later: every read that waits may share the response. */
  | 'newest'
  /** That is not certain: only reads that arrived before the request to the bank may share the response. */
  | 'unordered'
  /** As `unordered`, and the response shows another status than the recorded one. */
  | 'changed'
  /** Another status was recorded since the request began. */
  | 'outdated';

/**
 * Records a status read.
 *
 * A response with another status than the recorded one is not stored: while it was fetched, another read may have returned
 * the recorded status to a TPP, and such a read changes nothing in the payment. The next response is stored.
 *
 * @param generation of the payment before the request to the bank
 * @returns the outcome and the changed payment, if it changes
 */
export function recordRead(
  payment: CachedPayment,
  generation: string,
  { statusHash, observedAtMs, responses }: Omit<StatusRead, 'isFinal'>,
): readonly [RecordOutcome, CachedPayment?] {
  const isKnown = payment.statusHash === statusHash;
  if (payment.generation !== generation) return [isKnown ? 'unordered' : 'outdated'];
  if (isKnown) {
    if (Object.keys(responses).length === 0) return ['newest'];
    return ['newest', { ...payment, responses: { ...payment.responses, ...responses } }];
  }
  const next = newGeneration(payment.endedAuthorisations);
  if (payment.statusHash !== undefined) return ['changed', next];
  return ['newest', { ...next, statusHash, statusSinceMs: observedAtMs, responses }];
}

/**
 * Records the observation of another operation. If its request began before the stored responses were fetched, they are
 * dropped although they are newer, which costs one read of the bank.
 *
 * @returns the changed payment; `undefined` if it contains the observation already
 */
export function recordObservation(
  payment: CachedPayment,
  observation: Observation,
): CachedPayment | undefined {
  const { endedAuthorisations } = payment;
  switch (observation.what) {
    case 'status': {
      const { statusHash, observedAtMs } = observation;
      if (payment.statusHash === statusHash) return undefined;
      return { ...newGeneration(endedAuthorisations), statusHash, statusSinceMs: observedAtMs };
    }
    case 'authorisation-ended': {
      const { authorisation } = observation;
      if (endedAuthorisations.includes(authorisation)) return undefined;
      return newGeneration([authorisation, ...endedAuthorisations].slice(0, maxAuthorisations));
    }
  }
}

/** If a payment has more, a read of one that is no longer listed drops the cached responses again. */
const maxAuthorisations = 16;

const newGeneration = (endedAuthorisations: readonly string[]): CachedPayment => ({
  generation: randomUUID(),
  statusHash: undefined,
  statusSinceMs: 0,
  responses: {},
  endedAuthorisations,
});
