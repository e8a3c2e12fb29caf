/** STAGE 2. Adds the ids of the tenants and environments of the configuration. */

import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { BeforeDeadline } from '../store/before-deadline.ts';
import { type ConfiguredIdentities, identitiesUnavailable } from './configured-identities.ts';

export interface IdentifyTenantDependencies {
  readonly identities: Pick<ConfiguredIdentities, 'current' | 'establish'>;
  readonly beforeDeadline: BeforeDeadline;
}

/** @throws GatewayError STATE_UNAVAILABLE until the configuration has been compared with the database, or if it contradicts it */
export function identifyTenant(dependencies: IdentifyTenantDependencies): Stage<PisRequest> {
  return (request, next) => {
    const known = dependencies.identities.current();
    if (!known) return identifyLater(dependencies, request, next);
    request.identities = known;
    return next(request);
  };
}

async function identifyLater(
  { identities, beforeDeadline }: IdentifyTenantDependencies,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  try {
    request.identities = await beforeDeadline(identities.establish(), request.deadlineAtMs);
  } catch (thrown) {
    throw identitiesUnavailable(thrown);
  }
  return next(request);
}
