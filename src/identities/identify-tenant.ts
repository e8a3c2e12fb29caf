/** STAGE 2. Adds the identities that the configuration gives to tenants and environments. */

import type { Identities } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import { type ConfiguredIdentities, identitiesUnavailable } from './configured-identities.ts';

export interface IdentifyTenantDependencies {
  readonly identities: Pick<ConfiguredIdentities, 'current' | 'ofWriter' | 'establish' | 'recordWriter'>;
}

/** @throws GatewayError STATE_UNAVAILABLE if the identities are unknown, or the configuration contradicts them */
export function identifyTenant(dependencies: IdentifyTenantDependencies): Stage<PisRequest> {
  const { identities } = dependencies;
  return (request, next) => {
    const { operation, client } = request;
    const known = operation.lane === 'write' ? identities.ofWriter(client.tenant) : identities.current();
    if (!known) return identifyLater(dependencies, request, next);
    request.identities = known;
    return next(request);
  };
}

async function identifyLater(
  dependencies: IdentifyTenantDependencies,
  request: PisRequest,
  next: Handler<PisRequest>,
): Promise<PisResponse> {
  request.identities = await recordedIdentities(dependencies, request);
  return next(request);
}

async function recordedIdentities(
  { identities }: IdentifyTenantDependencies,
  { operation, client }: PisRequest,
): Promise<Identities> {
  try {
    if (operation.lane === 'write') return await identities.recordWriter(client.tenant);
    return await identities.establish();
  } catch (thrown) {
    throw identitiesUnavailable(thrown);
  }
}
