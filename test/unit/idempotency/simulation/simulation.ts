/** A simulated deployment: several instances on one state, one bank, TPPs that send requests, operators that resolve. */

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { parseEntry } from '../../../../src/idempotency/ledger-entry.ts';
import { type ErrorCode, errorTable, GatewayError, withAdvice } from '../../../../src/request/errors.ts';
import type { PisResponse } from '../../../../src/request/messages.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import type { State } from '../../../../src/state/ports.ts';
import { type FakeTime, installFakeTime } from '../fake-time.ts';
import { createInstance, type Instance } from '../instance.ts';
import { initiation } from '../requests.ts';
import { type BehaviourName, createFakeBank, type FakeBank, type TppCall } from './fake-bank.ts';
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
  /** Renews the lease and runs the maintenance of the ledger; not while the previous call is running. */
  heartbeat(): Promise<void>;
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
  readonly bank: FakeBank;
  readonly calls: readonly TppCall[];
  readonly responses: readonly TppResponse[];
  /** All ids under which an entry was ever stored. */
  readonly ids: ReadonlySet<string>;
  /** Request keys of all writes that operators tried to resolve. */
  readonly resolved: Set<string>;
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

/** Identifies one use of an X-Request-ID. */
export const requestKey = ({ tenant, requestId }: Pick<TppCall, 'tenant' | 'requestId'>) =>
  `${tenant} ${requestId}`;

export function createSimulation(instanceCount: number): Simulation {
  const time = installFakeTime();
  const scheduler = createScheduler(time);
  const network = createSimulatedProcess();
  const ids = new Set<string>();
  const indexed = new Set<string>();
  const currentCall = new AsyncLocalStorage<TppCall>();
  const state = recordingState(createMemoryState(), { ids, indexed, currentCall });
  const bank = createFakeBank(scheduler, network);
  const calls: TppCall[] = [];
  const responses: TppResponse[] = [];

  function start(): SimulatedInstance {
    const process = createSimulatedProcess();
    const connection = createUnreliableState(state, scheduler, process, network);
    const instance = createInstance(connection);
    const { instanceLeases, maintain } = instance.services;
    let isBusy = false;
    const heartbeat = async () => {
      if (isBusy) return;
      isBusy = true;
      await Promise.allSettled([instanceLeases.renew(), maintain()]); // the next heartbeat retries
      isBusy = false;
    };
    return { ...instance, process, state: connection, heartbeat };
  }

  const instances = Array.from({ length: instanceCount }, start);
  const instance = (which: number): SimulatedInstance => instances[which % instances.length] ?? start();

  return {
    time,
    scheduler,
    state,
    bank,
    calls,
    responses,
    ids,
    indexed,
    instance,
    instances,
    resolved: new Set(),
    failures: [],
    crash(which) {
      instance(which).process.kill();
      instances[which % instances.length] = start();
    },
    send({ send, process }, { tenant, requestId, body, behaviour }) {
      const call: TppCall = { tenant, requestId, body, behaviour, process };
      calls.push(call);
      const { promise, resolve } = Promise.withResolvers<TppResponse>();
      const respond = (response: TppResponse) => {
        if (process.isDead()) return;
        responses.push(response);
        resolve(response);
      };
      const request = initiation({ tenant, requestId, body, withinMs: 35_000 });
      const outcome = currentCall.run(call, () => send(request, (routed) => bank.send(call, routed)));
      outcome.then(
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
  /** The call on whose behalf an operation runs; its attempt id is recorded. */
  readonly currentCall: AsyncLocalStorage<TppCall>;
}

/** The same state; records what the invariants need. */
function recordingState(state: State, { ids, indexed, currentCall }: StateRecords): State {
  const { writeIfAbsent, replace } = state.keyValues;
  const { sets } = state;
  return {
    ...state,
    sets: {
      ...sets,
      add: (key, member) => sets.add(key, member).then(() => void indexed.add(member)),
      remove: (key, member) => sets.remove(key, member).then(() => void indexed.delete(member)),
    },
    keyValues: {
      ...state.keyValues,
      writeIfAbsent(key, value, ttlMs) {
        ids.add(key.slice('ledger:entry:'.length));
        return writeIfAbsent(key, value, ttlMs);
      },
      replace(key, expected, value, ttlMs) {
        const [call, next] = [currentCall.getStore(), parseEntry(value)];
        if (call && next?.step === 'sending') call.attempt = next.attempt;
        return replace(key, expected, value, ttlMs);
      },
    },
  };
}
