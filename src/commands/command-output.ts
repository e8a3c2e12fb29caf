/** What a command prints, and the exit code that it ends with. */

import { z } from 'zod';

export interface CommandOutput {
  readonly lines: readonly string[];
  readonly exitCode: number;
}

const errorBody = z.object({ error: z.string() });

/** What the gateway says against it. @param body of its answer */
export const refusalOutput = (body: unknown): CommandOutput => ({
  lines: [errorBody.safeParse(body).data?.error ?? 'refused'],
  exitCode: 1,
});
