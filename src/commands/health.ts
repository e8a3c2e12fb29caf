/** `penstock health`: asks a running gateway whether it is ready, for health checks of containers and for scripts. */

import { z } from 'zod';
import { adminUrlOf, notAGateway, send } from './admin-client.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

/** Milliseconds. */
const responseTimeoutMs = 5_000;

const healthBody = z.object({ status: z.string(), reasons: z.array(z.string()).default([]) });

/**
 * Lines: the status, such as `ready`, and the reasons and warnings. The exit code is 1 if the gateway is not ready.
 *
 * @throws CommandError if no gateway answers
 */
export async function showHealth(options: Pick<Options, 'config' | 'live' | 'url'>): Promise<CommandOutput> {
  const url = `${adminUrlOf(options)}/health/${options.live ? 'live' : 'ready'}`;
  const { ok, status, body } = await send(url, responseTimeoutMs);
  const health = healthBody.safeParse(body).data;
  if (!health) throw notAGateway(url, status);
  const lines = [health.status, ...health.reasons.map((reason) => `  ${reason}`)];
  return ok ? success(lines, body) : { lines, data: body, exitCode: exitCodes.refused };
}
