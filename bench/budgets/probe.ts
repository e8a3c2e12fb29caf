/** The client of `programs/probe.ts`: asks a running server for its counters. */

import { once } from 'node:events';
import { connect } from 'node:net';

/** Promises and timers that were created between two commands. */
export interface AsyncCounts {
  /** Created by a line of `src/`, directly or through Node. */
  readonly promises: number;
  readonly timers: number;
  /** Created by a line of a library. */
  readonly libraryPromises: number;
  readonly libraryTimers: number;
  /** The lines of `src/` with their numbers. */
  readonly places: readonly (readonly [place: string, count: number])[];
}

export interface MemoryUse {
  /** The heap and everything outside of it that belongs to objects of the heap, such as Buffers. */
  readonly bytes: number;
  /** The old generation: objects that have survived two young collections. */
  readonly oldBytes: number;
  /** Garbage collections since the start. */
  readonly collections: number;
  /** Those of the old generation. */
  readonly fullCollections: number;
}

export type ProbeCommand = 'startCounting' | 'stopCounting' | 'collectGarbage' | 'memoryUse';

export interface ProcessProbe {
  /** Counts while `act` runs. */
  count(act: () => Promise<unknown>): Promise<AsyncCounts>;
  collectGarbage(): Promise<void>;
  memoryUse(): Promise<MemoryUse>;
  close(): void;
}

/** @param path of the Unix socket, as in BENCH_PROBE */
export async function connectToProbe(path: string): Promise<ProcessProbe> {
  const socket = connect(path).setEncoding('latin1');
  await once(socket, 'connect');
  const send = async (command: ProbeCommand) => {
    socket.write(`${command}\n`);
    let line = '';
    while (!line.endsWith('\n'))
      line += (await once(socket, 'data', { signal: AbortSignal.timeout(30_000) }))[0];
    return JSON.parse(line);
  };
  return {
    async count(act) {
      await send('startCounting');
      await act();
      return send('stopCounting');
    },
    collectGarbage: () => send('collectGarbage'),
    memoryUse: () => send('memoryUse'),
    close: () => void socket.destroy(),
  };
}
