/** A gateway instance reduced to its idempotency stage, and helpers to inspect what it stores. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Config } from '../../../src/config/schema.ts';
import type { Claim } from '../../../src/idempotency/claim.ts';
import {
  createIdempotencyDependencies,
  enforceIdempotency,
} from '../../../src/idempotency/enforce-idempotency.ts';
import {
  type ClaimResult,
  createLedgerServices,
  type LedgerServices,
} from '../../../src/idempotency/ledger.ts';
import type { InDoubtEntry, LedgerEntry } from '../../../src/idempotency/ledger-entry.ts';
import { attemptName, createLedgerStore, type StoredEntry } from '../../../src/idempotency/ledger-store.ts';
import { createResolve, type Resolve } from '../../../src/idempotency/resolve.ts';
import { createStorageBudget } from '../../../src/idempotency/storage-budget.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { GatewayError, stateUnavailable } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import type { Handler } from '../../../src/request/stage.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { configOf, publicUrl, type Sections } from '../../kit/gateway.ts';
import { withMeaning } from '../../kit/meaning.ts';
import { type FakeTime, installFakeTime } from './fake-time.ts';
import { cancellation, identityOf, initiation } from './requests.ts';

export interface Instance {
  readonly services: LedgerServices;
  /** Sends a request through the stage of its lane. */
  send(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse>;
  /** What the ledger knows about a request; claims it if it is new. */
  lookUp(request?: PisRequest): ClaimResult | Promise<ClaimResult>;
  /** Claims a new request; fails if there already is an entry. */
  claim(request?: PisRequest): Promise<Claim>;
  readonly resolve: Resolve;
  /** The affinities recorded by `resolve`, as text. */
  readonly recordedAffinities: readonly string[];
  /** The audit events recorded by `resolve`. */
  readonly auditEvents: readonly Readonly<Record<string, unknown>>[];
  /** The number of writes in doubt that the last scan found. */
  inDoubtCount(): number | undefined;
  /** Level and message of every logged line. */
  readonly logged: readonly string[];
  /** The events of all requests. */
  readonly events: readonly RequestEvent[];
}

/** @param state the state, or this instance's connection to a shared one */
export function createInstance(state: State, sections: Sections = {}): Instance {
  const config = configWith(sections);
  const logged: string[] = [];
  const events: RequestEvent[] = [];
  const recordedAffinities: string[] = [];
  const auditEvents: Readonly<Record<string, unknown>>[] = [];
  const log = (level: string, message: string) => void logged.push(`${level}: ${message}`);
  const { idempotency, state: stateSettings, shaping } = config;
  const services = createLedgerServices(state, {
    entries: state.keyValues,
    memoryBytes: idempotency.memory,
    lossSettings: () => ({
      afterLoss: stateSettings.afterLoss,
      windowMs: idempotency.window,
      expectedInstances: shaping.expectedInstances,
      isUpgraded: false,
    }),
    storageBudget: createStorageBudget(state.tokenBuckets, () => idempotency, {
      metrics: { increment: () => {}, counter: () => ({ value: 0 }) },
      log,
    }),
    countDuplicate: () => void logged.push('metric: penstock_duplicate_attempts_total'),
    rememberForMs: config.payments.rememberFor,
    countUnconfirmed: () => void logged.push('metric: penstock_unconfirmed_marks_total'),
    log,
  });
  const resolve = createResolve({
    ...services,
    affinity: {
      recordEnvironment: async (paymentId, { environment, tenant, initiatedAs }, retention) =>
        paymentId !== foreignPaymentId &&
        recordedAffinities.push(`${paymentId} of ${tenant} in ${environment}, ${initiatedAs}, ${retention}`) >
          0,
    },
    audit: {
      record: async ({ who, outcome, details }) => void auditEvents.push({ who, outcome, ...details }),
    },
    environmentNameOf: (environmentId) => environmentId,
    windowMs: () => config.idempotency.window,
  });
  const dependencies = createIdempotencyDependencies(config, services, resolve);
  const stage = enforceIdempotency(dependencies);
  const lookUp = (request = initiation()) => dependencies.ledger.claim(services.identify(request), request);
  return {
    services,
    lookUp,
    async claim(request) {
      const result = await lookUp(request);
      assert.ok(result.kind === 'claimed', result.kind);
      return result.claim;
    },
    recordedAffinities,
    auditEvents,
    logged,
    events,
    send(request, next) {
      const observed = { ...request, recordEvent: (event: RequestEvent) => events.push(event) };
      return request.operation.lane === 'write'
        ? stage(observed, next)
        : dependencies.resolveByReads(observed, next);
    },
    resolve,
    inDoubtCount: services.inDoubtCount,
  };
}

/** A payment that belongs to another tenant. */
export const foreignPaymentId = 'foreign-payment';

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const configs = new Map<string, Config>();

/** Parses each configuration once: the simulation creates thousands of instances. */
function configWith(sections: Sections): Config {
  const name = JSON.stringify(sections);
  const config = configs.get(name) ?? configOf({ environments, listen: { publicUrl }, ...sections });
  configs.set(name, config);
  return config;
}

/** The defaults of `idempotency.lateAnswer` and `idempotency.window`. */
export const lateAnswerMs = 120_000;
export const windowMs = 24 * 3_600_000;
/** An instance that has not renewed its lease for this long counts as dead. */
export const leaseMs = 6_000;

/** Installs fake time until the test ends. */
export function useFakeTime(t: TestContext): FakeTime {
  const time = installFakeTime();
  t.after(time.restore);
  return time;
}

/** Fake time, a state in memory and one instance on it. */
export function startInstance(t: TestContext) {
  const time = useFakeTime(t);
  const state = createMemoryState();
  return { time, state, instance: createInstance(state) };
}

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

/** The request's entry, which must be in doubt, and the name by which operators resolve it. */
export async function inDoubtWriteOf(
  state: State,
  request = initiation(),
): Promise<{ readonly id: string; readonly entry: InDoubtEntry }> {
  const entry = await entryOf(state, request);
  assert.ok(entry && 'why' in entry && entry.why !== undefined, 'the entry is in doubt');
  return { id: attemptName(identityOf(request).id, entry.attempt), entry: { ...entry, why: entry.why } };
}

/** A response to an initiation if it has a paymentId, or else to a cancellation. @param headers besides `Content-Type` */
export function bankResponse(status: number, body = '', more: HeaderFields = []): PisResponse {
  const headers: HeaderFields = [['Content-Type', 'application/json'], ...more];
  const response = { status, headers, body: Buffer.from(body), environment: 'sandbox' };
  const { operation } = body.includes('paymentId') || more.length > 0 ? initiation() : cancellation();
  return withMeaning(operation, { ...response, servedFrom: 'bank' });
}

type Change = 'replace' | 'writeIfAbsent';

/** A connection to a state that can lose the reply to a change: the change is made, and the operation fails. */
export function createLossyState(state: State): State & { loseNextReply(change?: Change): void } {
  let lossy: Change | undefined;
  const { keyValues } = state;

  async function changed(change: Change, isDone: Promise<boolean>): Promise<boolean> {
    const isLost = lossy === change;
    if (isLost) lossy = undefined;
    await isDone;
    if (isLost) throw stateUnavailable();
    return isDone;
  }

  return {
    ...state,
    keyValues: {
      ...keyValues,
      replace: (...all) => changed('replace', keyValues.replace(...all)),
      writeIfAbsent: (...all) => changed('writeIfAbsent', keyValues.writeIfAbsent(...all)),
    },
    loseNextReply(change = 'replace') {
      lossy = change;
    },
  };
}

/** The code of the GatewayError that the promise rejects with; fails if it does not. */
export async function errorCodeOf(promise: unknown): Promise<string> {
  const thrown: unknown = await Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof GatewayError, String(thrown));
  return thrown.code;
}
