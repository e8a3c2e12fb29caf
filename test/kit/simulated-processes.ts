/**
 * Several processes in one: each has clocks and timers of its own, can be paused and killed, and lives in simulated time. Time passes only
 * when a test lets it. Code that runs in no simulated process has the real clocks and timers.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises, { setImmediate as turn } from 'node:timers/promises';

export interface SimulatedProcess {
  readonly name: string;
  readonly isKilled: boolean;
  readonly isPaused: boolean;
  /** Runs code in this process, with all that it sets off. */
  run<Result>(action: () => Result): Result;
  /** Runs it as soon as the process is not paused; never if it is killed. */
  deliver(action: () => void): void;
  /** Resolves as soon as the process is not paused; never if it is killed. */
  gate(): Promise<void>;
  /** Nothing arrives, and no timer fires. The monotonic clock of a suspended machine may stand still; the other one never does. */
  pause(monotonicClock: 'runs' | 'stands still'): void;
  resume(): void;
  /** Nothing that it does has an effect any more, except what is under way. */
  kill(): void;
  onKill(listener: () => void): void;
  /** Sets its wall clock. @param ms forward, or back if negative */
  jump(ms: number): void;
}

export interface SimulatedProcesses {
  start(name: string): SimulatedProcess;
  /** Milliseconds of simulated time since 1970. */
  now(): number;
  /** To be called whenever something happens: `settle` ends when nothing does. */
  touch(): void;
  /** Waits for real input or output, such as a statement in PostgreSQL; time stands still until then. */
  awaitReal<Result>(result: Promise<Result>): Promise<Result>;
  /** Whether time passes although real input or output is awaited, because it never arrives. */
  isStuck: boolean;
  /** A few turns of the event loop: whatever is under way gets on a little. */
  turns(count: number): Promise<void>;
  /** Until nothing happens without time. */
  settle(): Promise<void>;
  pass(ms: number): Promise<void>;
}

interface Timer {
  readonly owner: Clocks;
  atMs: number;
  readonly everyMs: number | undefined;
  readonly fire: () => void;
  ref(): Timer;
  unref(): Timer;
}

interface Clocks {
  monotonicMs(): number;
  wallMs(): number;
  setTimer(fire: () => void, ms: number, everyMs?: number): Timer;
  clearTimer(timer: Timer): void;
}

const current = new AsyncLocalStorage<Clocks>();
const startMs = Date.parse('2026-01-01T12:00:00Z');
/** Turns of the event loop in which nothing has happened: longer than any chain of immediates in the gateway. */
const quietTurns = 6;
/** For how long real input or output is awaited at once. Milliseconds. */
const realWaitMs = 1;

/** Replaces the clocks and timers of this process. @returns a function that restores them */
export function installSimulatedClocks(): () => void {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval };
  const { now } = Date;
  const realNow = performance.now.bind(performance);
  const sleep = timersPromises.setTimeout;
  type Callback = (...all: unknown[]) => void;
  const clear = (whichever: 'clearTimeout' | 'clearInterval') => (timer: Timer | undefined) =>
    timer?.owner ? timer.owner.clearTimer(timer) : real[whichever](timer as never); // one of Node
  Object.assign(globalThis, {
    setTimeout: (callback: Callback, ms = 0, ...all: unknown[]) =>
      current.getStore()?.setTimer(() => callback(...all), ms) ?? real.setTimeout(callback, ms, ...all),
    setInterval: (callback: Callback, ms = 0, ...all: unknown[]) =>
      current.getStore()?.setTimer(() => callback(...all), ms, Math.max(1, Math.ceil(ms))) ??
      real.setInterval(callback, ms, ...all),
    clearTimeout: clear('clearTimeout'),
    clearInterval: clear('clearInterval'),
  });
  Object.assign(Date, { now: () => current.getStore()?.wallMs() ?? now() });
  Object.assign(performance, { now: () => current.getStore()?.monotonicMs() ?? realNow() });
  Object.assign(timersPromises, {
    setTimeout: (ms?: number, value?: unknown, options?: object) =>
      current.getStore()
        ? new Promise((resolve) => setTimeout(resolve, ms, value))
        : sleep(ms, value, options),
  });
  syncBuiltinESMExports();
  return () => {
    Object.assign(globalThis, real);
    Object.assign(Date, { now });
    Reflect.deleteProperty(performance, 'now'); // uncovers the real one on the prototype
    Object.assign(timersPromises, { setTimeout: sleep });
    syncBuiltinESMExports();
  };
}

export function createSimulatedProcesses(): SimulatedProcesses {
  let nowMs = startMs;
  let activity = 0;
  let awaited = 0;
  const timers = new Set<Timer>();
  const processes = new Map<Clocks, SimulatedProcess>();

  function start(name: string): SimulatedProcess {
    let monotonicOffsetMs = -startMs;
    let wallOffsetMs = 0;
    let standsStillSinceMs: number | undefined;
    let isKilled = false;
    let resumed: PromiseWithResolvers<void> | undefined;
    const listeners: (() => void)[] = [];
    const clocks: Clocks = {
      monotonicMs: () => (standsStillSinceMs ?? nowMs) + monotonicOffsetMs,
      wallMs: () => nowMs + wallOffsetMs,
      setTimer(fire, ms, everyMs) {
        const atMs = clocks.monotonicMs() + Math.max(1, Math.ceil(ms)); // whole numbers: sums are exact
        const timer: Timer = { owner: clocks, atMs, everyMs, fire, ref: () => timer, unref: () => timer };
        if (!isKilled) timers.add(timer);
        return timer;
      },
      clearTimer: (timer) => void timers.delete(timer),
    };
    const gate = async () => {
      while (resumed) await resumed.promise;
      if (isKilled) await new Promise(() => {});
    };
    const simulated: SimulatedProcess = {
      name,
      get isKilled() {
        return isKilled;
      },
      get isPaused() {
        return resumed !== undefined;
      },
      run: (action) => current.run(clocks, action),
      deliver(action) {
        setImmediate(() => {
          activity += 1;
          void gate().then(() => {
            activity += 1;
            current.run(clocks, action);
          });
        });
      },
      gate,
      pause(monotonicClock) {
        resumed ??= Promise.withResolvers();
        if (monotonicClock === 'stands still') standsStillSinceMs ??= nowMs;
      },
      resume() {
        if (standsStillSinceMs !== undefined) monotonicOffsetMs -= nowMs - standsStillSinceMs;
        standsStillSinceMs = undefined;
        resumed?.resolve();
        resumed = undefined;
      },
      kill() {
        if (isKilled) return;
        isKilled = true;
        for (const timer of timers) if (timer.owner === clocks) timers.delete(timer);
        simulated.resume();
        processes.delete(clocks);
        for (const listener of listeners) listener();
      },
      onKill: (listener) => void listeners.push(listener),
      jump(ms) {
        wallOffsetMs += Math.round(ms);
      },
    };
    processes.set(clocks, simulated);
    return simulated;
  }

  const isDue = (timer: Timer, ms: number) =>
    !processes.get(timer.owner)?.isPaused && timer.atMs - timer.owner.monotonicMs() <= ms;

  /** How long until a timer is due. Milliseconds. */
  function nextDueMs(): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const timer of timers)
      if (isDue(timer, nextMs)) nextMs = Math.max(0, timer.atMs - timer.owner.monotonicMs());
    return nextMs;
  }

  function fire(timer: Timer): void {
    if (timer.everyMs === undefined) timers.delete(timer);
    else timer.atMs += timer.everyMs;
    activity += 1;
    processes.get(timer.owner)?.run(timer.fire);
  }

  async function settle(): Promise<void> {
    let seen = -1;
    for (let quiet = 0; quiet < quietTurns; quiet = activity === seen ? quiet + 1 : 0) {
      seen = activity;
      if (awaited > 0 && !all.isStuck) {
        await timersPromises.setTimeout(realWaitMs);
        activity += 1;
      } else await turn();
    }
  }

  const all: SimulatedProcesses = {
    start,
    now: () => nowMs,
    touch() {
      activity += 1;
    },
    async awaitReal(result) {
      awaited += 1;
      try {
        return await result;
      } finally {
        awaited -= 1;
        activity += 1;
      }
    },
    isStuck: false,
    async turns(count) {
      for (let left = count; left > 0; left--) await turn();
    },
    settle,
    async pass(ms) {
      const endMs = nowMs + Math.ceil(ms);
      await settle();
      for (let waitMs = nextDueMs(); nowMs + waitMs <= endMs; waitMs = nextDueMs()) {
        nowMs += waitMs;
        for (const timer of timers) if (isDue(timer, 0)) fire(timer);
        await settle();
      }
      nowMs = Math.max(nowMs, endMs);
    },
  };
  return all;
}
