/** Responses of the admin API, and what a refusal means for the exit code. */

import { z } from 'zod';
import { CommandError } from './command-error.ts';
import { exitCodes } from './exit-codes.ts';

export interface AdminResponse {
  readonly ok: boolean;
  readonly status: number;
  /** Parsed JSON; `undefined` for a response without a body. */
  readonly body: unknown;
}

/** The body of a refusal; other members are facts about it. */
export const refusalSchema = z.looseObject({ error: z.string() });

/**
 * The body of a success.
 *
 * @param lines what the body of a refusal reports in addition to the error
 * @throws CommandError with the gateway's error text, if the gateway refused
 */
export function successBody({ ok, status, body }: AdminResponse, lines: readonly string[] = []): unknown {
  if (ok) return body;
  const { error, ...data } = parseBody(refusalSchema, body);
  throw new CommandError(exitCodeOf(status), status === 401 ? unknownToken : error, { lines, data });
}

/** The gateway's own text is about a header of HTTP. */
const unknownToken =
  'The gateway does not know this operator token: set PENSTOCK_ADMIN_TOKEN, or name a file with --token-file FILE.';

/**
 * A body in the form that a command reads.
 *
 * @throws CommandError if it has another form, as that of a gateway of another version
 */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  throw new CommandError(
    exitCodes.internal,
    'The response of the gateway has an unknown form: use the command penstock of the version that the gateway has.',
    { cause: read.error },
  );
}

function exitCodeOf(status: number): number {
  if (status === 400 || status === 421) return exitCodes.usage; // 421: the listener does not accept this host name
  if (status === 401 || status === 403) return exitCodes.permission;
  if (status === 503) return exitCodes.unavailable;
  return status < 500 ? exitCodes.refused : exitCodes.internal;
}
