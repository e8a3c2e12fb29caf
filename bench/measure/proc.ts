/** What Linux says of the CPU's time, in /proc: of processes with their children, and of whole cores. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** One process as in /proc/PID/stat: who started it, and its CPU time in user and kernel, all threads. */
interface ProcessTimes {
  readonly parent: number;
  readonly cpuMs: number;
  /** What its children have used that have ended. */
  readonly childrenMs: number;
}

/** One core since the machine has started. Milliseconds. */
export interface CoreTimes {
  /** Spent on processes; interrupts belong to none. */
  readonly busyMs: number;
  /** Wanted, but given to another machine by the hypervisor. */
  readonly stolenMs: number;
}

/** @param text of /proc/PID/stat; the name in it may hold spaces and parentheses */
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

/** CPU time of this process and of all that it has ever started. Milliseconds. */
export function cpuMsOfAllOurs(): number {
  const all = processes();
  const { childrenMs = 0 } = all.get(process.pid) ?? {};
  return cpuMsOf([process.pid]) + childrenMs;
}

/** CPU time of these processes and of all that they have started and that still run. Milliseconds. */
export function cpuMsOf(pids: readonly number[]): number {
  const all = processes();
  const isTheirs = (pid: number): boolean =>
    pids.includes(pid) || (all.has(pid) && isTheirs(all.get(pid)?.parent ?? 0));
  return [...all].reduce((sum, [pid, { cpuMs }]) => sum + (isTheirs(pid) ? cpuMs : 0), 0);
}

/** All cores, now. */
export const cores = (): ReadonlyMap<number, CoreTimes> =>
  parseCores(readFileSync('/proc/stat', 'utf8'), tickMs());

/** One field of /proc/PID/status that is measured in kB, such as `VmRSS`, in MiB. */
export function memoryMiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** How many files and sockets a process holds open. */
export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

function processes(): ReadonlyMap<number, ProcessTimes> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return new Map(
    pids.flatMap((pid) => {
      try {
        return [[Number(pid), parseProcess(readFileSync(`/proc/${pid}/stat`, 'utf8'), tickMs())]];
      } catch {
        return []; // it has ended meanwhile
      }
    }),
  );
}

let tick: number | undefined;

/** What Linux counts CPU time in: 10 ms on nearly every machine. */
function tickMs(): number {
  tick ??= 1_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return tick;
}
