/** STAGE 3. Decides which side of the bank a request goes to; from here on it is known, in answers and errors alike. */

import type { Environment } from '../flow/environment.ts';
import { asGatewayError, GatewayError, inEnvironment } from '../flow/errors.ts';
import type { PisRequest, RoutedRequest } from '../flow/messages.ts';
import type { Stage } from '../flow/stage.ts';

/**
 * The environment that `Penstock-Environment` names, else the active one.
 *
 * @throws GatewayError ENVIRONMENT_UNKNOWN if the named one does not exist
 */
export function chooseEnvironment(
  environments: ReadonlyMap<string, Environment>,
  active: Environment,
): Stage<PisRequest, RoutedRequest> {
  return async (request, next) => {
    const environment =
      request.namedEnvironment === undefined ? active : environments.get(request.namedEnvironment);
    if (!environment) throw unknown(environments);
    try {
      return await next({ ...request, environment });
    } catch (thrown) {
      throw inEnvironment(asGatewayError(thrown), environment.name);
    }
  };
}

function unknown(environments: ReadonlyMap<string, Environment>): GatewayError {
  const names = [...environments.keys()].join(', ');
  return new GatewayError('ENVIRONMENT_UNKNOWN', `Penstock-Environment must be one of: ${names}.`, {
    field: 'Penstock-Environment',
  });
}
