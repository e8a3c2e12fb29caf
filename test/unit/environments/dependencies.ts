/** Fake dependencies of the chooseEnvironment stage. */

import type { PaymentAffinity } from '../../../src/environments/affinity.ts';
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
    noteStatus: () => {},
    log: options.log ?? captureLog().log,
    active: {
      known: () => record,
      read: async () => record ?? unavailable(),
    },
    beforeDeadline: (statements) => statements,
    prefetchStatus: () => undefined,
    prefetchPermit: () => {},
    affinity: {
      environmentsOf: async () => affinities,
      lastSeen: () => [],
      cacheStored: () => {},
      addBankIds: async () => {},
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

function unavailable(): never {
  throw new GatewayError('STATE_UNAVAILABLE', 'The shared state is unavailable.');
}

/** How long a request to an environment may take, by its lane. Milliseconds. */
export const deadlines = { write: 35_000, read: 15_000, status: 10_000 };

const environmentNamed = (name: string) => ({
  ...environmentOf({ name, origin: `https://${name}.bank.example` }),
  deadlines,
});
