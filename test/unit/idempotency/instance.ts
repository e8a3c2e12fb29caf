/** Gateway instances reduced to their idempotency stages, on a database in memory, and helpers to look at what they store. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { EncryptionKeys } from '../../../src/config/encryption-keys.ts';
import {
  createIdempotencyDependencies,
  enforceIdempotency,
} from '../../../src/idempotency/enforce-idempotency.ts';
import { createLedgerServices } from '../../../src/idempotency/ledger-services.ts';
import { createResolve } from '../../../src/idempotency/resolve.ts';
import type { StorageBudget } from '../../../src/idempotency/storage-budget.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import type { Handler } from '../../../src/request/stage.ts';
import type { Database } from '../../../src/store/database.ts';
import { createInstanceTable } from '../../../src/store/instances.ts';
import { createLedgerTable, type LedgerRow } from '../../../src/store/ledger.ts';
import { createPaymentTable } from '../../../src/store/payments.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { configOf, publicUrl } from '../../kit/gateway.ts';
import { type FakeTime, installFakeTime } from './fake-time.ts';
import { createNextStage, type NextStage } from './next-stage.ts';
import { identityOf, initiation } from './requests.ts';

const environments = { sandbox: { baseUrl: 'http://127.0.0.1:9', standardVersion: '1.3.11' } };
const config = configOf({ environments, listen: { publicUrl } });

/** The defaults of `idempotency.lateAnswer` and `idempotency.window`. */
export const lateAnswerMs = 120_000;
export const windowMs = 24 * 3_600_000;
/** An instance that has not reported for this long counts as dead. */
export const leaseMs = 6_000;

/** Installs fake time until the test ends. */
function useFakeTime(t: TestContext): FakeTime {
  const time = installFakeTime();
  t.after(time.restore);
  return time;
}

interface InstanceOptions {
  readonly keys?: EncryptionKeys;
  readonly storageBudget?: StorageBudget;
}

function createInstance(
  database: Database,
  id: string,
  {
    keys,
    storageBudget = { countEntry: () => {}, check: () => {}, refusedTenants: () => [] },
  }: InstanceOptions,
) {
  const logged: string[] = [];
  const events: RequestEvent[] = [];
  const auditEvents: Readonly<Record<string, unknown>>[] = [];
  const services = createLedgerServices({
    database,
    instances: createInstanceTable(database, id),
    instanceId: id,
    keys,
    storageBudget,
    windowMs: () => windowMs,
    countDuplicate: () => void logged.push('metric: penstock_duplicate_attempts_total'),
    log: (level, message) => void logged.push(`${level}: ${message}`),
  });
  const resolve = createResolve({
    ...services,
    audit: {
      record: async ({ who, outcome, details }) => void auditEvents.push({ who, outcome, ...details }),
    },
    environmentNameOf: (environmentId) => environmentId,
  });
  const dependencies = createIdempotencyDependencies(config, services, resolve);
  const stage = enforceIdempotency(dependencies);

  /** Sends a request through the stage of its lane. */
  function send(request: PisRequest, next: Handler<PisRequest>): Promise<PisResponse> {
    const observed = { ...request, recordEvent: (event: RequestEvent) => events.push(event) };
    return Promise.resolve(
      request.operation.lane === 'write'
        ? stage(observed, next)
        : dependencies.resolveByReads(observed, next),
    );
  }

  /** Sends a write, until the bank has received it. */
  async function begin(
    request: PisRequest = initiation(),
    bank: NextStage = createNextStage(),
  ): Promise<Begun> {
    const response = send(request, bank.next);
    const early = response.then(
      () => Promise.reject(new Error('answered without the bank')),
      (thrown: unknown) => Promise.reject(thrown),
    );
    await Promise.race([bank.received, early]);
    return {
      respond(given) {
        bank.respond(given);
        return response;
      },
      fail(error) {
        bank.fail(error);
        return errorCodeOf(response);
      },
    };
  }

  return {
    services,
    send,
    begin,
    resolve,
    /** The audit events recorded by `resolve`. */
    auditEvents,
    /** Level and message of every logged line. */
    logged,
    /** The events of all requests. */
    events,
    /** Sends a write; the bank does not answer it. */
    async putInDoubt(request?: PisRequest, environment?: string): Promise<Begun> {
      const begun = await begin(request, createNextStage(environment));
      assert.equal(await begun.fail(noAnswer()), 'OUTCOME_UNKNOWN');
      return begun;
    },
    /** What a repeat gets, which must not be sent: the status of a stored response, or the code of an error. */
    async repeat(request: PisRequest = initiation()): Promise<string> {
      const notSent = () => assert.fail('the repeat is sent');
      return send(request, notSent).then(({ status, servedFrom }) => `${status} from ${servedFrom}`, codeOf);
    },
  };
}

/** A write that the bank has received. */
interface Begun {
  respond(response: PisResponse): Promise<PisResponse>;
  /** @returns the code of the error that the TPP gets */
  fail(error: unknown): Promise<string>;
}

export const noAnswer = () => new GatewayError('OUTCOME_UNKNOWN', 'no answer');

/** Fake time, a database in memory, and a living instance on it. */
export async function startInstance(t: TestContext, options: InstanceOptions = {}) {
  const time = useFakeTime(t);
  const shared = await newGatewayDatabase(t);
  const ledger = createLedgerTable(shared);
  let instances = 0;

  /** A further instance, which lives until the time passes, with a connection that can fail. */
  async function newInstance(more: InstanceOptions = options) {
    instances += 1;
    const id = `instance-${instances}`;
    await shared.query(
      'INSERT INTO instance (id, seen_at, reporting_since, schema_version) VALUES ($1, now_ms(), now_ms(), 1)',
      [id],
    );
    const database = createFaultyDatabase(shared);
    return { ...createInstance(database, id, more), database };
  }

  const rowOf = (request: PisRequest = initiation()): Promise<LedgerRow | undefined> =>
    ledger.read(identityOf(request).key);

  return {
    time,
    database: shared,
    instance: await newInstance(),
    newInstance,
    rowOf,
    /** How far a request got; `undefined` without a row. */
    stepOf: async (request?: PisRequest) => (await rowOf(request))?.step,
    /** By which operators resolve the request, which must be in doubt. */
    async doubtIdOf(request?: PisRequest): Promise<string> {
      const row = await rowOf(request);
      assert.ok(row && row.why !== null, 'it is in doubt');
      return String(row.attempt);
    },
    /** The payments with this id: tenant, environment, service and product. */
    async paymentsWith(paymentId: string) {
      const found = await createPaymentTable(shared).find(paymentId);
      return found.map(({ tenant, environment, initiatedAs, isPermanent }) => ({
        tenant,
        environment,
        initiatedAs,
        isPermanent,
      }));
    },
  };
}

/** The code of the GatewayError that the promise rejects with; fails if it does not. */
export async function errorCodeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => assert.fail('it succeeds'), codeOf);
}

function codeOf(thrown: unknown): string {
  assert.ok(thrown instanceof GatewayError, String(thrown));
  return thrown.code;
}
