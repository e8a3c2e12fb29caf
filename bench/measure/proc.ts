/** CPU time from /proc: of processes with their children, and of whole cores. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** One process of /proc/PID/stat: its parent, and its CPU time in user and kernel mode, all threads. */
interface ProcessTimes {
  readonly parent: number;
  readonly cpuMs: number;
  /** CPU time of its terminated children. */
  readonly childrenMs: number;
}

/** One core since boot, in milliseconds. */
export interface CoreTimes {
  /** Time of processes; interrupts are not included. */
  readonly busyMs: number;
  /** Time that the hypervisor gave to other machines (steal time). */
  readonly stolenMs: number;
}

/** @param text of /proc/PID/stat; the process name may contain spaces and parentheses */
export function parseProcess(text: string, tickMs: number): ProcessTimes {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15).map(Number);
  return {
    parent: Number(fields[1]),
    cpuMs: (user + system) * tickMs,
    childrenMs: (childrenUser + childrenSystem) * tickMs,
  };
}

/** @param text of /proc/stat. @returns the cores by number */
export function parseCores(text: string, tickMs: number): ReadonlyMap<number, CoreTimes> {
  const lines = text.matchAll(/^cpu(\d+) (.*)$/gm);
  return new Map(
    Array.from(lines, ([, core, values = '']) => {
      const [user = 0, nice = 0, system = 0, , , , , stolenMs = 0] = values
        .split(' ')
        .map((ticks) => Number(ticks) * tickMs);
      return [Number(core), { busyMs: user + nice + system, stolenMs }];
    }),
  );
}

/** CPU time of these processes and of all processes they have started, in milliseconds. */
export function cpuMsOf(pids: readonly number[]): number {
  const all = processes();
  const isDescendant = (pid: number): boolean =>
    pids.includes(pid) || (all.has(pid) && isDescendant(all.get(pid)?.parent ?? 0));
  return [...all].reduce(
    (sum, [pid, { cpuMs, childrenMs }]) => sum + (isDescendant(pid) ? cpuMs + childrenMs : 0),
    0,
  );
}

/** The current times of all cores. */
export const cores = (): ReadonlyMap<number, CoreTimes> =>
  parseCores(readFileSync('/proc/stat', 'utf8'), tickMs());

/** A field of /proc/PID/status in kB, such as `VmRSS`, converted to MiB. */
export function memoryMiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** The number of open files and sockets of a process. */
export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

function processes(): ReadonlyMap<number, ProcessTimes> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return new Map(
    pids.flatMap((pid) => {
      try {
        return [[Number(pid), parseProcess(readFileSync(`/proc/${pid}/stat`, 'utf8'), tickMs())]];
      } catch {
        return []; // the process has exited
      }
    }),
  );
}

let tick: number | undefined;

/** Linux's unit of CPU time: 10 ms on nearly every machine. */
function tickMs(): number {
  tick ??= 1_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return tick;
}
