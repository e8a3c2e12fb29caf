/** Errors that end a command: what went wrong, and the exit code. */

import { exitCodes } from './exit-codes.ts';

interface CommandErrorOptions extends ErrorOptions {
  /** What the command has found out nevertheless: for standard output. */
  readonly lines?: readonly string[];
  /** Facts for `--json`, printed together with the message. */
  readonly data?: object;
}

export class CommandError extends Error {
  readonly exitCode: number;
  readonly lines: readonly string[];
  readonly data: object;

  constructor(
    exitCode: number,
    message: string,
    { lines = [], data = {}, ...options }: CommandErrorOptions = {},
  ) {
    super(message, options);
    this.exitCode = exitCode;
    this.lines = lines;
    this.data = data;
  }
}

/** The arguments contradict each other, or one is missing. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super(exitCodes.usage, message);
  }
}
