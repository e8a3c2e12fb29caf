/** What a command prints, and its exit code. */

import { z } from 'zod';

export interface CommandOutput {
  readonly lines: readonly string[];
  readonly exitCode: number;
}

const errorBody = z.object({ error: z.string() });

/** The error of a response of the admin API. */
export const refusalOutput = (body: unknown): CommandOutput => ({
  lines: [errorBody.safeParse(body).data?.error ?? 'refused'],
  exitCode: 1,
});
