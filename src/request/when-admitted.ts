/** Continues a request when its client's quota has admitted it. */

import type { PisRequest } from './messages.ts';

/**
 * Calls `act` when the quota has admitted the request: at once, unless the shared state is still being asked.
 *
 * @throws GatewayError QUOTA_EXCEEDED; `act` is not called then
 */
export function whenAdmitted<Value>(request: PisRequest, act: () => Promise<Value>): Promise<Value> {
  const { quota } = request;
  if (!quota) return act();
  request.quota = undefined;
  return quota.then(act);
}
