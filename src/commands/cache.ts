/** `penstock cache purge`: removes cached payment statuses on all instances. */

import { type AdminClient, pathWithQuery } from './admin-client.ts';
import { successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { type CommandOutput, success } from './command-output.ts';

/** Without a payment, removes all cached statuses, of one environment or of all. */
export async function purgeCache(
  call: AdminClient,
  { payment, environment, reason }: Pick<Options, 'payment' | 'environment' | 'reason'>,
): Promise<CommandOutput> {
  const selection = {
    ...(payment !== undefined && { payment }),
    ...(environment !== undefined && { environment }),
  };
  successBody(await call('DELETE', pathWithQuery('/status-cache', { ...selection, reason })));
  const what = payment === undefined ? 'all cached statuses' : `the cached status of payment ${payment}`;
  const where = environment === undefined ? '' : ` in ${environment}`;
  return success([`Removed ${what}${where}, on all instances.`], {
    purged: payment === undefined && environment === undefined ? 'all' : selection,
  });
}
