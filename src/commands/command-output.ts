/** What a command prints, and its exit code. */

import { exitCodes } from './exit-codes.ts';

export interface CommandOutput {
  readonly lines: readonly string[];
  /** The same as data, for `--json`. */
  readonly data: unknown;
  readonly exitCode: number;
}

export const success = (lines: readonly string[], data: unknown): CommandOutput => ({
  lines,
  data,
  exitCode: exitCodes.ok,
});
