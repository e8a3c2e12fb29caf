/** Several instances on one state, before one bank, asked by TPPs and seen after by operators. */

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { type ErrorCode, GatewayError, kinds, withAdvice } from '../../../../src/flow/errors.ts';
import type { PisResponse } from '../../../../src/flow/messages.ts';
import { parsed } from '../../../../src/idempotency/entry.ts';
import { createMemoryState } from '../../../../src/state/memory.ts';
import type { State } from '../../../../src/state/ports.ts';
import { createInstance, type Instance } from '../instance.ts';
import { initiation } from '../requests.ts';
import { type StoppedClocks, stopClocks } from '../stopped-clocks.ts';
import { type Call, createPayingBank, type MannerName, type PayingBank } from './paying-bank.ts';
import { createProcess, createSteps, type Process, type Steps } from './steps.ts';
import { createWayTo, type WayToState } from './way-to-state.ts';

/** One run of an instance. */
export interface Run extends Instance {
  readonly process: Process;
  readonly way: WayToState;
  /** One beat of its heart; never two at once. */
  beat(): Promise<void>;
}

/** What a TPP was told. */
export interface Told {
  readonly call: Call;
  readonly status: number;
  readonly code?: ErrorCode;
  readonly text: string;
}

export interface World {
  readonly clocks: StoppedClocks;
  readonly steps: Steps;
  readonly state: State;
  readonly bank: PayingBank;
  readonly calls: readonly Call[];
  readonly told: readonly Told[];
  /** Ids of entries, as far as anything was ever kept under them. */
  readonly ids: ReadonlySet<string>;
  /** The X-Request-IDs that operators have resolved, with the tenant's name. */
  readonly resolved: Set<string>;
  /** What went wrong where nobody waits for it. */
  readonly failures: unknown[];
  /** Names in the index of what is open. */
  readonly listed: ReadonlySet<string>;
  run(which: number): Run;
  readonly runs: readonly Run[];
  /** An instance dies, and another takes its place. */
  crash(which: number): void;
  /** @returns what the TPP is told; never, if the instance dies before */
  ask(run: Run, asking: Asked): Promise<Told>;
  /** Lets time pass, in which instances that are awake beat. */
  pass(ms: number): Promise<void>;
}

/** What a TPP asks for. */
export interface Asked {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly manner: MannerName;
}

export const nameOf = ({ tenant, requestId }: Pick<Call, 'tenant' | 'requestId'>) => `${tenant} ${requestId}`;

export function createWorld(instances: number): World {
  const clocks = stopClocks();
  const steps = createSteps(clocks);
  const network = createProcess();
  const ids = new Set<string>();
  const listed = new Set<string>();
  const asking = new AsyncLocalStorage<Call>();
  const state = remembering(createMemoryState(), { ids, listed, asking });
  const bank = createPayingBank(steps, network);
  const calls: Call[] = [];
  const told: Told[] = [];

  function start(): Run {
    const process = createProcess();
    const way = createWayTo(state, steps, process, network);
    const instance = createInstance(way);
    let isBeating = false;
    const beat = async () => {
      if (isBeating) return;
      isBeating = true;
      await Promise.allSettled([instance.lasting.holders.renew(), instance.lasting.tidy()]); // the next beat tries again
      isBeating = false;
    };
    return { ...instance, process, way, beat };
  }

  const runs = Array.from({ length: instances }, start);
  const run = (which: number): Run => runs[which % runs.length] ?? start();

  return {
    clocks,
    steps,
    state,
    bank,
    calls,
    told,
    ids,
    listed,
    run,
    runs,
    resolved: new Set(),
    failures: [],
    crash(which) {
      run(which).process.die();
      runs[which % runs.length] = start();
    },
    ask({ ask, process }, { tenant, requestId, body, manner }) {
      const call: Call = { tenant, requestId, body, manner, process };
      calls.push(call);
      const { promise, resolve } = Promise.withResolvers<Told>();
      const tell = (one: Told) => {
        if (process.isDead()) return;
        told.push(one);
        resolve(one);
      };
      const request = initiation({ tenant, requestId, body, withinMs: 35_000 });
      const answer = asking.run(call, () => ask(request, (onward) => bank.send(call, onward)));
      answer.then(
        (response) => tell(toldBy(call, response)),
        (thrown: unknown) => tell(failureOf(call, thrown)),
      );
      return promise;
    },
    async pass(ms) {
      const beats = Math.min(8, Math.ceil(ms / 1_000));
      for (let beat = 0; beat < beats; beat++) {
        await clocks.pass(ms / beats, steps.settle);
        for (const { process, beat } of runs) if (process.isRunning()) void beat();
        await steps.settle();
      }
    },
  };
}

function toldBy(call: Call, { status, body }: PisResponse): Told {
  return { call, status, text: body.toString() };
}

function failureOf(call: Call, thrown: unknown): Told {
  assert.ok(thrown instanceof GatewayError, String((thrown as Error).stack));
  const { code, message } = withAdvice(thrown, 'write');
  return { call, status: kinds[code].status, code, text: message };
}

interface Notes {
  /** Ids of the ledger under which anything was kept. */
  readonly ids: Set<string>;
  /** What stands in any set. */
  readonly listed: Set<string>;
  /** Whose doing it is: it learns its attempt. */
  readonly asking: AsyncLocalStorage<Call>;
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
        const [call, next] = [asking.getStore(), parsed(value)];
        if (call && next?.step === 'sending') call.attempt = next.attempt;
        return replace(key, expected, value, ttlMs);
      },
    },
  };
}
