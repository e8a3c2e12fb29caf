/** Standard output as the destination of the log. The gateway never waits for the reader. */

import { fstatSync, writeSync } from 'node:fs';
import type { LogOutput } from './log.ts';

/** Bytes buffered for a reader that does not read. Lines beyond that are dropped and counted. */
const maxBufferedBytes = 8 * 1024 * 1024;

export interface Output extends LogOutput {
  /** Sets the function that is called with the number of dropped lines once lines are accepted again. */
  onLinesDropped(report: (droppedLines: number) => void): void;
  /** Resolves when the operating system has all lines, which may be never. */
  flush(): Promise<void>;
}

/** Writes to a pipe or terminal asynchronously, and to a file synchronously. */
export function standardOutput(): Output {
  const { stdout } = process;
  stdout.on('error', ignoreError); // the reader has closed the pipe
  const status = fstatSync(stdout.fd);
  if (!status.isFIFO() && !status.isSocket() && !stdout.isTTY) return fileOutput(stdout.fd);

  let droppedLines = 0;
  let report: (droppedLines: number) => void = () => {};
  const reportDroppedLines = () => {
    const dropped = droppedLines;
    droppedLines = 0;
    if (dropped > 0) report(dropped);
  };
  const bufferWritten = () => new Promise<void>((resolve) => stdout.write('', () => resolve()));
  stdout.on('drain', reportDroppedLines);
  return {
    terminal: stdout.isTTY ? { hasColors: stdout.hasColors() } : undefined,
    write(line) {
      if (stdout.writableLength > maxBufferedBytes) droppedLines++;
      else if (stdout.writable) stdout.write(line);
    },
    onLinesDropped(listener) {
      report = listener;
    },
    async flush() {
      await bufferWritten();
      reportDroppedLines();
      await bufferWritten();
    },
  };
}

/**
 * Writes all lines of one turn of the event loop with one system call, and the remaining lines when the process exits.
 * Only a SIGKILL or a crash of Node loses the lines of one turn.
 *
 * Not Node's own stream, which never writes again after one failed write, as on a full disk.
 */
function fileOutput(descriptor: number): Output {
  let buffer = '';
  const writeBuffer = () => {
    const lines = buffer;
    buffer = '';
    try {
      if (lines !== '') writeSync(descriptor, lines);
    } catch {} // the disk is full: there is nowhere to report it
  };
  process.on('exit', writeBuffer);
  return {
    write(line) {
      if (buffer === '') setImmediate(writeBuffer);
      buffer += line;
    },
    onLinesDropped() {},
    flush: async () => writeBuffer(),
  };
}

function ignoreError(): void {}
