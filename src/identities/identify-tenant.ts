/** STAGE 2. Adds the ids of the tenants and environments of the configuration. */

import { GatewayError } from '../request/errors.ts';
import type { Identities } from '../request/identities.ts';
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
    refuseMoved(request, known);
    return next(request);
  };
}

/** @throws GatewayError STATE_UNAVAILABLE if the client works for another tenant than the configuration of this instance says */
function refuseMoved({ client }: Pick<PisRequest, 'client'>, { movedClients }: Identities): void {
  if (!movedClients.has(client.name)) return;
  const text =
    'Your client works for another tenant now, and this instance has not loaded its new configuration yet; nothing was sent. Try again.';
  throw new GatewayError('STATE_UNAVAILABLE', text);
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
  refuseMoved(request, request.identities);
  return next(request);
}
