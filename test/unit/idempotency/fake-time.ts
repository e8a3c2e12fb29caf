/** Fake clocks and timers for the whole process: `Date.now`, `performance.now` and `setTimeout`. */

import assert from 'node:assert/strict';

/** Time that moves only when a test moves it, until `restore`. */
export interface FakeTime {
  /** Moves the clocks forward without firing timers, as a blocked process does. */
  skip(ms: number): void;
  /** Moves the clocks forward and fires the timers that are due, in order; awaits `settle` after each. */
  advance(ms: number, settle?: () => Promise<void>): Promise<void>;
  /** Restores the real clocks and timers; pending fake timers never fire. */
  restore(): void;
}

interface Timer {
  unref(): Timer;
  readonly atMs: number;
  readonly fire: () => void;
}

const startMs = Date.parse('2026-01-01T12:00:00Z');

/** Runs everything that can run without time passing. */
export async function settleTasks(): Promise<void> {
  for (let round = 0; round < 10; round++) await new Promise((resolve) => setImmediate(resolve));
}

let isInstalled = false;

export function installFakeTime(): FakeTime {
  assert.ok(!isInstalled, 'the time is real before it becomes fake');
  isInstalled = true;
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  const { now } = Date;
  const timers = new Set<Timer>();
  let nowMs = 1_000_000;

  Object.assign(Date, { now: () => startMs + nowMs });
  Object.assign(performance, { now: () => nowMs });
  Object.assign(globalThis, {
    setTimeout(callback: (...all: unknown[]) => void, ms: number, ...all: unknown[]) {
      // Node's client of HTTP calls `unref`, one turn after a response: perhaps one of the previous test.
      const timer: Timer = {
        atMs: nowMs + Math.max(1, ms),
        fire: () => callback(...all),
        unref: () => timer,
      };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: Timer) => void timers.delete(timer),
  });

  /** The timer that is due first; of equals, the one that was set first. */
  const nextTimerBy = (untilMs: number) => {
    let next: Timer | undefined;
    for (const timer of timers) if (timer.atMs <= untilMs && !(next && next.atMs <= timer.atMs)) next = timer;
    return next;
  };

  return {
    skip(ms) {
      nowMs += ms;
    },
    async advance(ms, settle = settleTasks) {
      const untilMs = nowMs + ms;
      for (let next = nextTimerBy(untilMs); next; next = nextTimerBy(untilMs)) {
        timers.delete(next);
        nowMs = Math.max(nowMs, next.atMs);
        next.fire();
        await settle();
      }
      nowMs = Math.max(nowMs, untilMs);
    },
    restore() {
      isInstalled = false;
      Object.assign(globalThis, real);
      Object.assign(Date, { now });
      Reflect.deleteProperty(performance, 'now'); // uncovers the real one on the prototype
    },
  };
}
