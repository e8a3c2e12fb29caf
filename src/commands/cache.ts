/** `penstock cache purge`: removes cached payment statuses on all instances. */

import type { AdminClient } from './admin-client.ts';
import { successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { UsageError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';

/** Without a payment, removes all cached statuses. */
export async function purgeCache(
  call: AdminClient,
  { payment, environment }: Pick<Options, 'payment' | 'environment'>,
): Promise<CommandOutput> {
  // The gateway would ignore the environment, and remove the statuses of the others as well.
  if (payment === undefined && environment !== undefined)
    throw new UsageError(
      '--environment needs --payment: without a payment, all cached statuses are removed.',
    );
  const selection = {
    ...(payment !== undefined && { payment }),
    ...(environment !== undefined && { environment }),
  };
  const query = new URLSearchParams(selection).toString();
  successBody(await call('DELETE', `/status-cache${query === '' ? '' : `?${query}`}`));
  const what = payment === undefined ? 'all cached statuses' : `the cached status of payment ${payment}`;
  const where = environment === undefined ? '' : ` in ${environment}`;
  return success([`Removed ${what}${where}, on all instances.`], {
    purged: payment === undefined ? 'all' : selection,
  });
}
