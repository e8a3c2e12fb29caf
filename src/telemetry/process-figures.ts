/** What this process uses: CPU, memory, and the delay of its event loop. */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { InstanceFigures } from './fleet-reports.ts';

export type ProcessFigures = Pick<InstanceFigures, 'cpuPercent' | 'memoryBytes' | 'eventLoopDelayMs'>;

/** Interval of the timer whose delay is measured. Milliseconds. */
const timerMs = 20;

interface FigureReader {
  start(): void;
  /** The figures since the last call. */
  read(): ProcessFigures;
  stop(): void;
}

export function createProcessFigures(): FigureReader {
  const delays = monitorEventLoopDelay({ resolution: timerMs });
  const usage = () => ({ cpu: process.cpuUsage(), atMs: performance.now() });
  let last = usage();
  let memoryBytes = 0;
  return {
    start: () => void delays.enable(),
    read() {
      const current = usage();
      const usedMs = (current.cpu.user - last.cpu.user + current.cpu.system - last.cpu.system) / 1_000;
      const elapsedMs = Math.max(1, current.atMs - last.atMs);
      const longestMs = delays.max / 1e6;
      last = current;
      delays.reset();
      try {
        memoryBytes = process.memoryUsage.rss();
      } catch {
        // It opens a file, which fails if the process has too many: the last figure remains.
      }
      return {
        cpuPercent: rounded((100 * usedMs) / elapsedMs),
        memoryBytes,
        eventLoopDelayMs: rounded(Math.max(0, longestMs - timerMs)),
      };
    },
    stop: () => void delays.disable(),
  };
}

const rounded = (value: number) => Math.round(value * 10) / 10;
