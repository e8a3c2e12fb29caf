/** Standard output as the log's destination: whatever becomes of its reader, the gateway never waits for it. */

import { fstatSync, writeSync } from 'node:fs';

/** How much may wait for a reader that does not read; lines beyond it are lost, and counted. Bytes. */
const maxBufferedBytes = 8 * 1024 * 1024;

/** Takes the log's lines. */
export interface Output {
  write(line: string): void;
  /** Comes back when all lines are with the system, which may be never. */
  flush(): Promise<void>;
}

/**
 * A pipe or a terminal is written to as fast as it is read, and not waited for; a file at once.
 *
 * @param onLinesLost told how many lines were lost, when there is room again
 */
export function standardOutput(onLinesLost: (lostLines: number) => void): Output {
  const { stdout } = process;
  stdout.on('error', ignore); // a reader that has gone
  const status = fstatSync(stdout.fd);
  if (!status.isFIFO() && !status.isSocket() && !stdout.isTTY) return fileOutput(stdout.fd);

  let lostLines = 0;
  const reportLostLines = () => {
    const lost = lostLines;
    lostLines = 0;
    if (lost > 0) onLinesLost(lost);
  };
  const bufferWritten = () => new Promise<void>((resolve) => stdout.write('', () => resolve()));
  stdout.on('drain', reportLostLines);
  return {
    write(line) {
      if (stdout.writableLength > maxBufferedBytes) lostLines++;
      else if (stdout.writable) stdout.write(line);
    },
    async flush() {
      await bufferWritten();
      reportLostLines();
      await bufferWritten();
    },
  };
}

/**
 * Writes all lines of one turn of the event loop at once: each write is a call of the system. What is held when the process
 * ends by itself is written; only a kill or a crash of Node loses the lines of one turn.
 *
 * Not Node's own stream: after one failed write, as on a full disk, that one never writes again.
 */
function fileOutput(descriptor: number): Output {
  let buffer = '';
  const writeBuffer = () => {
    const lines = buffer;
    buffer = '';
    try {
      if (lines !== '') writeSync(descriptor, lines);
    } catch {} // the disk is full: there is nowhere left to say so
  };
  process.on('exit', writeBuffer);
  return {
    write(line) {
      if (buffer === '') setImmediate(writeBuffer);
      buffer += line;
    },
    flush: async () => writeBuffer(),
  };
}

function ignore(): void {}
