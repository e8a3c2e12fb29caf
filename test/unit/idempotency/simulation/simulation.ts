/** A simulated deployment: several instances on one state, one bank, TPPs that send requests, operators that resolve. */

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { epochKey } from '../../../../src/idempotency/epochs.ts';
import { type LedgerEntry, parseEntry } from '../../../../src/idempotency/ledger-entry.ts';
import type { IdentityContradiction } from '../../../../src/identities/configured-identities.ts';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../../src/request/messages.ts';
import type { State } from '../../../../src/state/ports.ts';
import { type FakeTime, installFakeTime } from '../fake-time.ts';
import { createInstance, type Instance } from '../instance.ts';
import { initiation } from '../requests.ts';
import {
  type ConfigurationFile,
  createConfigurationFile,
  createInstanceTenants,
} from './configured-tenants.ts';
import { type BehaviourName, createFakeBank, type FakeBank, type TppCall } from './fake-bank.ts';
import { createForgetfulState, type ForgetfulState } from './forgetful-state.ts';
import {
  createScheduler,
  createSimulatedProcess,
  type Scheduler,
  type SimulatedProcess,
} from './scheduler.ts';
import { createUnreliableState, type UnreliableState } from './unreliable-state.ts';

export interface SimulatedInstance extends Instance {
  readonly process: SimulatedProcess;
  readonly state: UnreliableState;
  /** Renews the lease, and runs the maintenance of the ledger and of the tenants; not while the previous call is running. */
  heartbeat(): Promise<void>;
  /** Uses the present configuration file. */
  reload(): Promise<void>;
  /** The name of a TPP's tenant in the configuration that the instance uses. */
  tenantOf(tpp: string): string;
}

export interface TppResponse {
  readonly call: TppCall;
  readonly status: number;
  readonly code?: ErrorCode;
  readonly text: string;
}

export interface TppRequest {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly behaviour: BehaviourName;
}

export interface Simulation {
  readonly time: FakeTime;
  readonly scheduler: Scheduler;
  readonly state: State;
  /** The same state without records, to make it lose data. */
  readonly store: ForgetfulState;
  readonly bank: FakeBank;
  readonly calls: readonly TppCall[];
  readonly responses: readonly TppResponse[];
  /** All ids under which an entry was ever stored. */
  readonly ids: ReadonlySet<string>;
  /** Request keys of all writes that operators tried to resolve. */
  readonly resolved: Set<string>;
  readonly configuration: ConfigurationFile;
  /** The request key of an entry. It names the TPP, because the tenant may have another identity than its first name. */
  keyOf(entry: LedgerEntry): string;
  /** Errors in background tasks. */
  readonly failures: unknown[];
  /** The names in the index of unresolved writes. */
  readonly indexed: ReadonlySet<string>;
  instance(which: number): SimulatedInstance;
  readonly instances: readonly SimulatedInstance[];
  /** Kills an instance and starts a new one in its place. */
  crash(which: number): void;
  /** @returns the response to the TPP; never settles if the instance dies first */
  send(instance: SimulatedInstance, request: TppRequest): Promise<TppResponse>;
  /** Advances the time; running instances send heartbeats. */
  advance(ms: number): Promise<void>;
}

/** The TPPs, by the first names of their tenants. */
const tpps = ['shop', 'rival'];

/** Identifies one use of an X-Request-ID. */
export const requestKey = ({ tenant, requestId }: Pick<TppCall, 'tenant' | 'requestId'>) =>
  `${tenant} ${requestId}`;

/** @param partitions of the ledger */
export function createSimulation(instanceCount: number, partitions: readonly string[]): Simulation {
  const time = installFakeTime();
  const scheduler = createScheduler(time);
  const network = createSimulatedProcess();
  const ids = new Set<string>();
  const indexed = new Set<string>();
  const currentCall = new AsyncLocalStorage<TppCall>();
  const store = createForgetfulState(partitions);
  const keys = new Map<string, string>();
  const failures: unknown[] = [];
  const configuration = createConfigurationFile(tpps);
  const state = recordingState(store, { ids, indexed, keys, currentCall, failures });
  const bank = createFakeBank(scheduler, network);
  const calls: TppCall[] = [];
  const responses: TppResponse[] = [];

  /** An instance that starts after a loss may find an old record: operators do what the message says. */
  function onRefusedConfiguration(error: IdentityContradiction): void {
    if (store.hasLost()) configuration.declareAll();
    else failures.push(error);
  }

  function start(): SimulatedInstance {
    const process = createSimulatedProcess();
    const connection = createUnreliableState(state, store, scheduler, process, network);
    const instance = createInstance(connection, {
      shaping: { expectedInstances: instanceCount },
      state: { redis: 'redis://127.0.0.1:9' },
    });
    const { lossGuard, maintain } = instance.services;
    const tenants = createInstanceTenants(connection, configuration, onRefusedConfiguration);
    let isBusy = false;
    const heartbeat = async () => {
      if (isBusy) return;
      isBusy = true;
      await Promise.allSettled([lossGuard.verify(), maintain(), tenants.refresh()]); // the next heartbeat retries
      isBusy = false;
    };
    return {
      ...instance,
      process,
      state: connection,
      heartbeat,
      reload: tenants.reload,
      tenantOf: tenants.nameOf,
      send: (request, next) => tenants.identify(request, (identified) => instance.send(identified, next)),
    };
  }

  const instances = Array.from({ length: instanceCount }, start);
  const instance = (which: number): SimulatedInstance => instances[which % instances.length] ?? start();

  return {
    time,
    scheduler,
    state,
    store,
    bank,
    calls,
    responses,
    ids,
    indexed,
    instance,
    instances,
    resolved: new Set(),
    configuration,
    keyOf: ({ attempt }) => keys.get(attempt) ?? '',
    failures,
    crash(which) {
      instance(which).process.kill();
      instances[which % instances.length] = start();
    },
    send({ send, process, tenantOf }, { tenant, requestId, body, behaviour }) {
      const call: TppCall = { tenant, requestId, body, behaviour, process };
      calls.push(call);
      const { promise, resolve } = Promise.withResolvers<TppResponse>();
      const respond = (response: TppResponse) => {
        if (process.isDead()) return;
        responses.push(response);
        resolve(response);
      };
      const request = requestOf(tenantOf(tenant), requestId, body);
      const outcome = currentCall.run(call, () => send(request, (routed) => bank.send(call, routed)));
      // The context ends with its response: what writes to it later fails.
      outcome
        .finally(() => Object.freeze(request))
        .then(
          (response) => respond(successResponse(call, response)),
          (thrown: unknown) => respond(errorResponse(call, thrown)),
        );
      return promise;
    },
    async advance(ms) {
      const heartbeats = Math.min(8, Math.ceil(ms / 1_000));
      for (let count = 0; count < heartbeats; count++) {
        await time.advance(ms / heartbeats, scheduler.runAll);
        for (const { process, heartbeat } of instances) if (process.isRunning()) void heartbeat();
        await scheduler.runAll();
      }
    },
  };
}

/** @param body the amount, and the payer after ` of `, who is named in a header */
function requestOf(tenant: string, requestId: string, body: string): PisRequest {
  const [amount, payer] = body.split(' of ');
  const headers = payer === undefined ? [] : [['PSU-ID', payer] as const];
  return initiation({ tenant, requestId, body: amount, headers, withinMs: 35_000 });
}

function successResponse(call: TppCall, { status, body }: PisResponse): TppResponse {
  return { call, status, text: body.toString() };
}

function errorResponse(call: TppCall, thrown: unknown): TppResponse {
  assert.ok(thrown instanceof GatewayError, String((thrown as Error).stack));
  const { code, message } = withAdvice(thrown, 'write');
  return { call, status: errorTable[code].status, code, text: message };
}

interface StateRecords {
  readonly ids: Set<string>;
  readonly indexed: Set<string>;
  /** The request key of every attempt. */
  readonly keys: Map<string, string>;
  /** The call on whose behalf an operation runs; its attempt id is recorded. */
  readonly currentCall: AsyncLocalStorage<TppCall>;
  readonly failures: unknown[];
}

/** The same state; records what the invariants need. */
function recordingState(state: State, { ids, indexed, keys, currentCall, failures }: StateRecords): State {
  const { read, writeIfAbsent, replace } = state.keyValues;
  const { sets } = state;

  /** A former name of an entry belongs to no partition. */
  async function isClosed(key: string): Promise<boolean> {
    const [, partition] = /^ledger:(.+)entry:/.exec(key) ?? [];
    if (partition === undefined) return false;
    const epoch = await read(epochKey(partition));
    return epoch === undefined || epoch.startsWith('closed');
  }

  /** Executes a change of an entry. A claim must not be stored in a partition that has lost data and is not open again. */
  async function change(key: string, value: string, execute: () => Promise<boolean>): Promise<boolean> {
    const [call, next] = [currentCall.getStore(), parseEntry(value)];
    if (call && next?.step === 'sending') call.attempt = next.attempt;
    if (!call || next?.step !== 'claimed') return execute();
    keys.set(next.attempt, requestKey(call));
    const wasClosed = await isClosed(key);
    const isChanged = await execute();
    if (isChanged && wasClosed) failures.push(new Error(`the state accepted a claim after a loss: ${value}`));
    return isChanged;
  }

  return {
    ...state,
    sets: {
      ...sets,
      add: (key, member) => sets.add(key, member).then(() => void indexed.add(member)),
      remove: (key, member) => sets.remove(key, member).then(() => void indexed.delete(member)),
    },
    keyValues: {
      ...state.keyValues,
      writeIfAbsent(key, value, ttlMs, fence) {
        const [, id] = key.split('entry:');
        if (id !== undefined) ids.add(id);
        return change(key, value, () => writeIfAbsent(key, value, ttlMs, fence));
      },
      replace: (key, expected, value, ...how) =>
        change(key, value, () => replace(key, expected, value, ...how)),
    },
  };
}
