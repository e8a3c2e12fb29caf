/** Several instances on one state, before one bank, asked by TPPs and seen after by operators. */

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

/** One run of an instance. */
export interface SimulatedInstance extends Instance {
  readonly process: SimulatedProcess;
  readonly state: UnreliableState;
  /** One beat of its heart; never two at once. */
  beat(): Promise<void>;
}

/** What a TPP was told. */
export interface TppResponse {
  readonly call: TppCall;
  readonly status: number;
  readonly code?: ErrorCode;
  readonly text: string;
}

export interface Simulation {
  readonly clocks: FakeTime;
  readonly scheduler: Scheduler;
  readonly state: State;
  readonly bank: FakeBank;
  readonly calls: readonly TppCall[];
  readonly responses: readonly TppResponse[];
  /** Ids of entries, as far as anything was ever kept under them. */
  readonly ids: ReadonlySet<string>;
  /** The X-Request-IDs that operators have resolved, with the tenant's name. */
  readonly resolved: Set<string>;
  /** What went wrong where nobody waits for it. */
  readonly failures: unknown[];
  /** Names in the index of what is open. */
  readonly indexed: ReadonlySet<string>;
  instance(which: number): SimulatedInstance;
  readonly instances: readonly SimulatedInstance[];
  /** An instance dies, and another takes its place. */
  crash(which: number): void;
  /** @returns what the TPP is told; never, if the instance dies before */
  send(run: SimulatedInstance, asking: TppRequest): Promise<TppResponse>;
  /** Lets time pass, in which instances that are awake beat. */
  advance(ms: number): Promise<void>;
}

/** What a TPP asks for. */
export interface TppRequest {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly manner: BehaviourName;
}

export const requestKey = ({ tenant, requestId }: Pick<TppCall, 'tenant' | 'requestId'>) =>
  `${tenant} ${requestId}`;

export function createSimulation(instances: number): Simulation {
  const clocks = installFakeTime();
  const steps = createScheduler(clocks);
  const network = createSimulatedProcess();
  const ids = new Set<string>();
  const listed = new Set<string>();
  const asking = new AsyncLocalStorage<TppCall>();
  const state = remembering(createMemoryState(), { ids, listed, asking });
  const bank = createFakeBank(steps, network);
  const calls: TppCall[] = [];
  const told: TppResponse[] = [];

  function start(): SimulatedInstance {
    const process = createSimulatedProcess();
    const way = createUnreliableState(state, steps, process, network);
    const instance = createInstance(way);
    let isBeating = false;
    const beat = async () => {
      if (isBeating) return;
      isBeating = true;
      await Promise.allSettled([instance.services.instanceLeases.renew(), instance.services.maintain()]); // the next beat tries again
      isBeating = false;
    };
    return { ...instance, process, state: way, beat };
  }

  const runs = Array.from({ length: instances }, start);
  const run = (which: number): SimulatedInstance => runs[which % runs.length] ?? start();

  return {
    clocks,
    scheduler: steps,
    state,
    bank,
    calls,
    responses: told,
    ids,
    indexed: listed,
    instance: run,
    instances: runs,
    resolved: new Set(),
    failures: [],
    crash(which) {
      run(which).process.die();
      runs[which % runs.length] = start();
    },
    send({ send, process }, { tenant, requestId, body, manner }) {
      const call: TppCall = { tenant, requestId, body, behaviour: manner, process };
      calls.push(call);
      const { promise, resolve } = Promise.withResolvers<TppResponse>();
      const tell = (one: TppResponse) => {
        if (process.isDead()) return;
        told.push(one);
        resolve(one);
      };
      const request = initiation({ tenant, requestId, body, withinMs: 35_000 });
      const answer = asking.run(call, () => send(request, (onward) => bank.send(call, onward)));
      answer.then(
        (response) => tell(toldBy(call, response)),
        (thrown: unknown) => tell(failureOf(call, thrown)),
      );
      return promise;
    },
    async advance(ms) {
      const beats = Math.min(8, Math.ceil(ms / 1_000));
      for (let beat = 0; beat < beats; beat++) {
        await clocks.advance(ms / beats, steps.runAll);
        for (const { process, beat } of runs) if (process.isRunning()) void beat();
        await steps.runAll();
      }
    },
  };
}

function toldBy(call: TppCall, { status, body }: PisResponse): TppResponse {
  return { call, status, text: body.toString() };
}

function failureOf(call: TppCall, thrown: unknown): TppResponse {
  assert.ok(thrown instanceof GatewayError, String((thrown as Error).stack));
  const { code, message } = withAdvice(thrown, 'write');
  return { call, status: errorTable[code].status, code, text: message };
}

interface Notes {
  /** Ids of the ledger under which anything was kept. */
  readonly ids: Set<string>;
  /** What stands in any set. */
  readonly listed: Set<string>;
  /** Whose doing it is: it learns its attempt. */
  readonly asking: AsyncLocalStorage<TppCall>;
}

/** The same state, which takes notes. */
function remembering(state: State, { ids, listed, asking }: Notes): State {
  const { writeIfAbsent, replace } = state.keyValues;
  const { sets } = state;
  return {
    ...state,
    sets: {
      ...sets,
      add: (key, member) => sets.add(key, member).then(() => void listed.add(member)),
      remove: (key, member) => sets.remove(key, member).then(() => void listed.delete(member)),
    },
    keyValues: {
      ...state.keyValues,
      writeIfAbsent(key, value, ttlMs) {
        ids.add(key.slice('ledger:entry:'.length));
        return writeIfAbsent(key, value, ttlMs);
      },
      replace(key, expected, value, ttlMs) {
        const [call, next] = [asking.getStore(), parseEntry(value)];
        if (call && next?.step === 'sending') call.attempt = next.attempt;
        return replace(key, expected, value, ttlMs);
      },
    },
  };
}
