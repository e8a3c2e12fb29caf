/** Decides the order of all asynchronous steps in a simulation: every step waits until the scheduler runs it. */

import assert from 'node:assert/strict';
import { type FakeTime, settleTasks } from '../fake-time.ts';

/** A gateway instance, or the network, which always runs. Steps of a suspended or dead process do not run. */
export interface SimulatedProcess {
  isRunning(): boolean;
  isDead(): boolean;
  suspend(): void;
  resume(): void;
  kill(): void;
}

export function createSimulatedProcess(): SimulatedProcess {
  let status: 'running' | 'suspended' | 'dead' = 'running';
  return {
    isRunning: () => status === 'running',
    isDead: () => status === 'dead',
    suspend: () => {
      if (status === 'running') status = 'suspended';
    },
    resume: () => {
      if (status === 'suspended') status = 'running';
    },
    kill: () => {
      status = 'dead';
    },
  };
}

export interface Scheduler {
  /** Resolves when the scheduler runs this step. */
  pause(process: SimulatedProcess): Promise<void>;
  /** Runs one of the steps that can run, and everything that follows without another step. */
  runOne(which: number): Promise<void>;
  /** Runs steps until none can run. */
  runAll(): Promise<void>;
}

interface PausedStep {
  readonly process: SimulatedProcess;
  readonly run: () => void;
}

/** More than any simulation needs: beyond it, some steps repeat forever. */
const maxRounds = 500;

export function createScheduler(time: FakeTime): Scheduler {
  let paused: PausedStep[] = [];

  async function run(steps: readonly PausedStep[]): Promise<void> {
    const running = new Set(steps);
    paused = paused.filter((step) => !running.has(step) && !step.process.isDead());
    time.skip(1);
    for (const step of steps) step.run();
    await settleTasks();
  }

  const runnable = () => paused.filter(({ process }) => process.isRunning());

  return {
    pause(process) {
      const { promise, resolve } = Promise.withResolvers<void>();
      paused.push({ process, run: resolve });
      return promise;
    },
    async runOne(which) {
      const steps = runnable();
      const step = steps[which % steps.length];
      await run(step ? [step] : []);
    },
    async runAll() {
      await settleTasks();
      let round = 0;
      for (let steps = runnable(); steps.length > 0; steps = runnable()) {
        assert.ok(round++ < maxRounds, 'the simulation ends');
        await run(steps);
      }
    },
  };
}
