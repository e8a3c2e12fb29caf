/** Fake dependencies of the chooseEnvironment stage. */

import type { AffinityRetention, PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import type { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { environmentOf } from '../../kit/environment.ts';
import { captureLog } from '../../kit/log-capture.ts';

type Dependencies = Parameters<typeof chooseEnvironment>[0];

interface Options {
  readonly environments?: readonly string[];
  readonly tenants?: number;
  /** `undefined` if the active environment is unknown. */
  readonly active?: string | undefined;
  readonly affinities?: readonly PaymentAffinity[];
  readonly log?: Dependencies['log'];
}

/** Defaults: two environments, one tenant, no affinities. */
export function dependenciesFor(options: Options = {}): Dependencies {
  const { environments = ['sandbox', 'production'], tenants = 1, affinities = [] } = options;
  const { active = undefined } = 'active' in options ? options : { active: 'sandbox' };
  const record = active === undefined ? undefined : { environment: active, version: 1 };
  return {
    environments: new Map(environments.map((name) => [name, environmentNamed(name)])),
    tenants,
    countWithheld: () => {},
    log: options.log ?? captureLog().log,
    active: {
      known: () => record,
      read: async () => record ?? unavailable(),
    },
    prefetchStatus: () => undefined,
    prefetchPermit: () => {},
    stateProblem: () => undefined,
    affinity: {
      environmentsOf: async () => affinities,
      lastSeen: () => [],
      recordEnvironment: async () => true,
    },
  };
}

/** The same, but the shared state is unavailable. */
export function withUnreachableState(dependencies: Dependencies): Dependencies {
  return {
    ...dependencies,
    active: { ...dependencies.active, read: async () => unavailable() },
    affinity: { ...dependencies.affinity, environmentsOf: async () => unavailable() },
  };
}

/** The same, but reports recorded affinities to the callback. */
export function withRecordedAffinities(
  dependencies: Dependencies,
  onRecord: (id: string, affinity: PaymentAffinity, retention: AffinityRetention) => void,
): Dependencies {
  return {
    ...dependencies,
    affinity: {
      ...dependencies.affinity,
      recordEnvironment: async (id, affinity, retention) => {
        onRecord(id, affinity, retention);
        return true;
      },
    },
  };
}

function unavailable(): never {
  throw new GatewayError('STATE_UNAVAILABLE', 'The shared state is unavailable.');
}

/** How long a request to an environment may take, by its lane. Milliseconds. */
export const deadlines = { write: 35_000, read: 15_000, status: 10_000 };

const environmentNamed = (name: string) => ({
  ...environmentOf({ name, origin: `https://${name}.bank.example` }),
  deadlines,
});
