/** What a command prints, and the exit code that it ends with. */

import { z } from 'zod';

export interface Printed {
  readonly lines: readonly string[];
  readonly exitCode: number;
}

const refusalShape = z.object({ error: z.string() });

/** What the gateway says against it. @param body of its answer */
export const refused = (body: unknown): Printed => ({
  lines: [refusalShape.safeParse(body).data?.error ?? 'refused'],
  exitCode: 1,
});
