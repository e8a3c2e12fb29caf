/** Instances of a gateway, reduced to their duplicates' guard. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Config } from '../../../src/config/schema.ts';
import type { Claim } from '../../../src/idempotency/claim.ts';
import { enforceIdempotency } from '../../../src/idempotency/enforce-idempotency.ts';
import { createLedger, type Ledger } from '../../../src/idempotency/ledger.ts';
import type { InDoubtEntry, LedgerEntry } from '../../../src/idempotency/ledger-entry.ts';
import {
  createIdempotencyDependencies,
  createLedgerServices,
  type LedgerServices,
} from '../../../src/idempotency/ledger-services.ts';
import { attemptName, createLedgerStore, type StoredEntry } from '../../../src/idempotency/ledger-store.ts';
import { identityOf } from '../../../src/idempotency/request-identity.ts';
import { createResolve, type Resolve } from '../../../src/idempotency/resolve.ts';
import { GatewayError, stateUnavailable } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import type { Handler } from '../../../src/request/stage.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { configOf, publicUrl, type Sections } from '../../kit/gateway.ts';
import { type FakeTime, installFakeTime } from './fake-time.ts';
import { initiation } from './requests.ts';

export interface Instance {
  /** Sends a request through the stage, as the line does. */
  send(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse>;
  readonly services: LedgerServices;
  readonly resolve: Resolve;
  /** Which payment was learnt to live where. */
  readonly recordedAffinities: readonly string[];
  /** How often operators resolved something. */
  readonly auditEvents: readonly Readonly<Record<string, unknown>>[];
  /** How many doubts there were at the last look around. */
  inDoubtCount(): number | undefined;
  /** Level and message of every line logged. */
  readonly logged: readonly string[];
  /** What was noted of all requests. */
  readonly events: readonly RequestEvent[];
}

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const configs = new Map<string, Config>();

/** Each configuration is read once: random histories make thousands of instances. */
function configWith(sections: Sections): Config {
  const name = JSON.stringify(sections);
  const config = configs.get(name) ?? configOf({ environments, listen: { publicUrl }, ...sections });
  configs.set(name, config);
  return config;
}

/** @param state its way to what all instances share */
export function createInstance(state: State, sections: Sections = {}): Instance {
  const config = configWith(sections);
  const logged: string[] = [];
  const facts: RequestEvent[] = [];
  const learnt: string[] = [];
  const audited: Readonly<Record<string, unknown>>[] = [];
  let count: number | undefined;
  const log = (level: string, message: string) => void logged.push(`${level}: ${message}`);
  const lasting = createLedgerServices(state, log, (doubts) => {
    count = doubts;
  });
  const stage = enforceIdempotency(createIdempotencyDependencies(config, lasting));
  return {
    services: lasting,
    recordedAffinities: learnt,
    auditEvents: audited,
    logged,
    events: facts,
    send: (request, next) => stage({ ...request, recordEvent: (fact) => facts.push(fact) }, next),
    resolve: createResolve({
      ...lasting,
      affinity: {
        recordEnvironment: async (paymentId, { environment, tenant }, lasts) =>
          void learnt.push(`${paymentId} of ${tenant} in ${environment}, ${lasts}`),
      },
      audit: {
        record: async ({ who, outcome, details }) => void audited.push({ who, outcome, ...details }),
      },
      windowMs: () => config.idempotency.window,
    }),
    inDoubtCount: () => count,
  };
}

// MERGED HEADER (rewrite or remove):
/* One instance and what it keeps, with time that stands still: where most tests of the ledger's parts begin. */

export const lateAnswerMs = 120_000;
export const windowMs = 24 * 3_600_000;
/** An instance that has not been heard of for so long is dead. */
export const leaseMs = 6_000;

/** Stops all clocks until the test ends. */
export function useFakeTime(t: TestContext): FakeTime {
  const clocks = installFakeTime();
  t.after(clocks.restore);
  return clocks;
}

export interface LedgerInstance extends Instance {
  readonly ledger: Ledger;
  /** Claims what is free. */
  claim(request?: PisRequest): Promise<Claim>;
}

/** @param way its way to the state */
export function instanceOn(way: State): LedgerInstance {
  const instance = createInstance(way);
  const { services } = instance;
  const terms = { lateAnswer: lateAnswerMs, window: windowMs };
  const ledger = createLedger({ ...services, markOrphaned: services.inDoubt.markOrphaned }, terms);
  return {
    ...instance,
    ledger,
    async claim(request = initiation()) {
      const found = await ledger.claim(identityOf(request), request);
      assert.ok(found.kind === 'free', found.kind);
      return found.claim;
    },
  };
}

/** A state and one instance on it. */
export function startInstance(t: TestContext) {
  const clocks = useFakeTime(t);
  const state = createMemoryState();
  return { clocks, state, instance: instanceOn(state) };
}

/** What is found of a request. */
export const claimAt = ({ ledger }: LedgerInstance, request: PisRequest = initiation()) =>
  ledger.claim(identityOf(request), request);

/** What is kept of a request. */
export const storedOf = (
  state: State,
  request: PisRequest = initiation(),
): Promise<StoredEntry | undefined> => createLedgerStore(state.keyValues).read(identityOf(request).id);

export async function entryOf(
  state: State,
  request: PisRequest = initiation(),
): Promise<LedgerEntry | undefined> {
  return (await storedOf(state, request))?.entry;
}

/** The doubt there is of a request, under its name. */
export async function inDoubtWriteOf(
  state: State,
  request = initiation(),
): Promise<{ readonly id: string; readonly entry: InDoubtEntry }> {
  const entry = await entryOf(state, request);
  assert.ok(entry && 'why' in entry && entry.why !== undefined, 'it is in doubt');
  return { id: attemptName(identityOf(request).id, entry.attempt), entry: { ...entry, why: entry.why } };
}

/** An answer of the bank. */
export function bankResponse(status: number, body = ''): PisResponse {
  const headers = [['Content-Type', 'application/json']] as const;
  return { status, headers, body: Buffer.from(body), servedFrom: 'bank', environment: 'sandbox' };
}

type Change = 'replace' | 'writeIfAbsent';

/** A way to a state on which a change is made, and nobody is told. */
export function createLossyState(state: State): State & { forgetNext(change?: Change): void } {
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
export async function errorCodeOf(act: Promise<unknown>): Promise<string> {
  const thrown: unknown = await act.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof GatewayError, String(thrown));
  return thrown.code;
}
