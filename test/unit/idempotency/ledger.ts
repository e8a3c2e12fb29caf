/** One instance and what it keeps, with time that stands still: where most tests of the ledger's parts begin. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { GatewayError, stateUnavailable } from '../../../src/flow/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/flow/messages.ts';
import type { Claim } from '../../../src/idempotency/claim.ts';
import { createEntries, type Stored } from '../../../src/idempotency/entries.ts';
import type { Doubtful, Entry } from '../../../src/idempotency/entry.ts';
import { identityOf } from '../../../src/idempotency/fingerprint.ts';
import { createLedger, type Ledger } from '../../../src/idempotency/ledger.ts';
import { nameOf } from '../../../src/idempotency/open-entries.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { createInstance, type Instance } from './instance.ts';
import { initiation } from './requests.ts';
import { type StoppedClocks, stopClocks } from './stopped-clocks.ts';

export const lateAnswerMs = 120_000;
export const windowMs = 24 * 3_600_000;
/** An instance that has not been heard of for so long is dead. */
export const leaseMs = 6_000;

/** Stops all clocks until the test ends. */
export function stopped(t: TestContext): StoppedClocks {
  const clocks = stopClocks();
  t.after(clocks.restart);
  return clocks;
}

export interface OneInstance extends Instance {
  readonly ledger: Ledger;
  /** Claims what is free. */
  claim(request?: PisRequest): Promise<Claim>;
}

/** @param way its way to the state */
export function instanceOn(way: State): OneInstance {
  const instance = createInstance(way);
  const { lasting } = instance;
  const terms = { lateAnswer: lateAnswerMs, window: windowMs };
  const ledger = createLedger({ ...lasting, doubtOf: lasting.doubts.doubtOf }, terms);
  return {
    ...instance,
    ledger,
    async claim(request = initiation()) {
      const found = await ledger.find(identityOf(request), request);
      assert.ok(found.kind === 'free', found.kind);
      return found.claim;
    },
  };
}

/** A state and one instance on it. */
export function start(t: TestContext) {
  const clocks = stopped(t);
  const state = createMemoryState();
  return { clocks, state, instance: instanceOn(state) };
}

/** What is found of a request. */
export const findAt = ({ ledger }: OneInstance, request: PisRequest = initiation()) =>
  ledger.find(identityOf(request), request);

/** What is kept of a request. */
export const storedOf = (state: State, request: PisRequest = initiation()): Promise<Stored | undefined> =>
  createEntries(state.keyValues).read(identityOf(request).id);

export async function keptOf(state: State, request: PisRequest = initiation()): Promise<Entry | undefined> {
  return (await storedOf(state, request))?.entry;
}

/** The doubt there is of a request, under its name. */
export async function doubtOf(
  state: State,
  request = initiation(),
): Promise<{ readonly id: string; readonly entry: Doubtful }> {
  const entry = await keptOf(state, request);
  assert.ok(entry && 'why' in entry && entry.why !== undefined, 'it is in doubt');
  return { id: nameOf(identityOf(request).id, entry.attempt), entry: { ...entry, why: entry.why } };
}

/** An answer of the bank. */
export function answer(status: number, body = ''): PisResponse {
  const headers = [['Content-Type', 'application/json']] as const;
  return { status, headers, body: Buffer.from(body), servedFrom: 'bank', environment: 'sandbox' };
}

type Change = 'replace' | 'writeIfAbsent';

/** A way to a state on which a change is made, and nobody is told. */
export function forgetfulWayTo(state: State): State & { forgetNext(change?: Change): void } {
  let forgotten: Change | undefined;
  const { keyValues } = state;

  async function told(change: Change, isDone: Promise<boolean>): Promise<boolean> {
    const isForgotten = forgotten === change;
    if (isForgotten) forgotten = undefined;
    await isDone;
    if (isForgotten) throw stateUnavailable();
    return isDone;
  }

  return {
    ...state,
    keyValues: {
      ...keyValues,
      replace: (...all) => told('replace', keyValues.replace(...all)),
      writeIfAbsent: (...all) => told('writeIfAbsent', keyValues.writeIfAbsent(...all)),
    },
    forgetNext(change = 'replace') {
      forgotten = change;
    },
  };
}

/** The code of the error that comes out, or fails if none does. */
export async function codeOf(act: Promise<unknown>): Promise<string> {
  const thrown: unknown = await act.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof GatewayError, String(thrown));
  return thrown.code;
}
