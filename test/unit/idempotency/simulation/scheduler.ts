/** Everything that takes its time in a history: each step waits until the history lets it go. */

import assert from 'node:assert/strict';
import { type FakeTime, settleTasks } from '../fake-time.ts';

/** What takes steps: an instance of the gateway, or the network, which never rests. */
export interface SimulatedProcess {
  isRunning(): boolean;
  isDead(): boolean;
  /** Nothing goes on until it wakes up. */
  sleep(): void;
  wake(): void;
  /** Nothing will ever go on. */
  die(): void;
}

export function createSimulatedProcess(): SimulatedProcess {
  let life: 'running' | 'asleep' | 'dead' = 'running';
  return {
    isRunning: () => life === 'running',
    isDead: () => life === 'dead',
    sleep: () => {
      if (life === 'running') life = 'asleep';
    },
    wake: () => {
      if (life === 'asleep') life = 'running';
    },
    die: () => {
      life = 'dead';
    },
  };
}

export interface Scheduler {
  /** Comes back when the history lets this step of a process go. */
  pause(process: SimulatedProcess): Promise<void>;
  /** Lets one of those go that can, and comes back when nothing goes on without another. */
  runOne(which: number): Promise<void>;
  /** Lets all go that can, until none is left. */
  runAll(): Promise<void>;
}

interface PausedStep {
  readonly process: SimulatedProcess;
  readonly go: () => void;
}

/** More than any history needs to come to rest: whoever takes more goes round in a circle. */
const maxRounds = 500;

export function createScheduler(clocks: FakeTime): Scheduler {
  let waiting: PausedStep[] = [];

  async function go(steps: readonly PausedStep[]): Promise<void> {
    const gone = new Set(steps);
    waiting = waiting.filter((step) => !gone.has(step) && !step.process.isDead());
    clocks.skip(1);
    for (const step of steps) step.go();
    await settleTasks();
  }

  const able = () => waiting.filter(({ process }) => process.isRunning());

  return {
    pause(process) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ process, go: resolve });
      return promise;
    },
    async runOne(which) {
      const steps = able();
      const step = steps[which % steps.length];
      await go(step ? [step] : []);
    },
    async runAll() {
      await settleTasks();
      let round = 0;
      for (let steps = able(); steps.length > 0; steps = able()) {
        assert.ok(round++ < maxRounds, 'it comes to rest');
        await go(steps);
      }
    },
  };
}
