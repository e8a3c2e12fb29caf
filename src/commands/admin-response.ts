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

const errorBody = z.looseObject({ error: z.string() });

/**
 * The body of a success.
 *
 * @param lines what the body of a refusal reports besides the error
 * @throws CommandError with the gateway's error text, if the gateway refused
 */
export function successBody({ ok, status, body }: AdminResponse, lines: readonly string[] = []): unknown {
  if (ok) return body;
  const { error = `The gateway answered ${status}.`, ...data } = errorBody.safeParse(body).data ?? {};
  throw new CommandError(exitCodeOf(status), error, { lines, data });
}

function exitCodeOf(status: number): number {
  if (status === 400 || status === 421) return exitCodes.usage; // 421: the listener does not accept this host name
  if (status === 401 || status === 403) return exitCodes.permission;
  if (status === 503) return exitCodes.unavailable;
  return status < 500 ? exitCodes.refused : exitCodes.internal;
}
