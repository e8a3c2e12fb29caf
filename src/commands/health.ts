/** `penstock health`: asks a running gateway whether it is ready, for health checks of containers and for scripts. */

import { z } from 'zod';
import { adminUrlOf, notAGateway, sendToAdminListener } from './admin-client.ts';
import type { AdminResponse } from './admin-response.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';
import { fetchUnverified, trustAuthorities } from './trusted-authorities.ts';

/** Milliseconds. */
const responseTimeoutMs = 5_000;

const healthBody = z.object({ status: z.string(), reasons: z.array(z.string()).default([]) });

/**
 * Lines: the status, such as `ready`, and the reasons and warnings. The exit code is 1 if the gateway is not ready.
 *
 * @throws CommandError if no gateway answers
 */
export async function showHealth(
  options: Pick<Options, 'config' | 'live' | 'url' | 'caFile'>,
): Promise<CommandOutput> {
  const url = `${adminUrlOf(options)}/health/${options.live ? 'live' : 'ready'}`;
  const { ok, status, body } = await ask(url, options);
  const health = healthBody.safeParse(body).data;
  if (!health) throw notAGateway(url, status);
  const lines = [health.status, ...health.reasons.map((reason) => `  ${reason}`)];
  return ok ? success(lines, body) : { lines, data: body, exitCode: exitCodes.refused };
}

/**
 * The listener of the configuration is on this machine, under an address that its certificate need not contain. The request contains
 * no secret.
 */
function ask(url: string, { url: named, caFile }: Pick<Options, 'url' | 'caFile'>): Promise<AdminResponse> {
  trustAuthorities(caFile);
  const isOwn = named === undefined && url.startsWith('https:');
  return sendToAdminListener(url, responseTimeoutMs, {}, isOwn ? fetchUnverified : fetch);
}
