/** STAGE 2. Adds the identities that the configuration gives to tenants and environments. */

import type { Identities } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type ConfiguredIdentities,
  IdentityContradiction,
  identitiesUnavailable,
} from './configured-identities.ts';

export interface IdentifyTenantDependencies {
  readonly identities: Pick<ConfiguredIdentities, 'current' | 'ofWriter' | 'establish' | 'recordWriter'>;
  /** Whether requests continue, with names in place of identities, while the shared state is unavailable. */
  readonly ifStateFails: 'refuse' | 'allow';
  readonly log: Log;
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
  { identities, ifStateFails, log }: IdentifyTenantDependencies,
  { operation, client }: PisRequest,
): Promise<Identities | undefined> {
  try {
    if (operation.lane === 'write') return await identities.recordWriter(client.tenant);
    return await identities.establish();
  } catch (thrown) {
    if (thrown instanceof IdentityContradiction || ifStateFails === 'refuse')
      throw identitiesUnavailable(thrown);
    log('warn', 'processing a request without the identities of tenants (idempotency.ifStateFails: allow)', {
      why: identitiesUnavailable(thrown).message,
    });
    return identities.current();
  }
}
