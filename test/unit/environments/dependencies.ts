/** What the choice of an environment is told, for a test that says it all itself. */

import type { AffinityRetention, PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import type { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { Environment } from '../../../src/request/messages.ts';
import { captureLog } from '../../kit/log-capture.ts';

type Facts = Parameters<typeof chooseEnvironment>[0];

interface Options {
  readonly environments?: readonly string[];
  readonly tenants?: number;
  /** The active environment; `undefined` if nobody could read it yet. */
  readonly active?: string | undefined;
  /** Where the payment lives; empty if nobody remembers it. */
  readonly affinities?: readonly PaymentAffinity[];
  readonly ifStateFails?: 'refuse' | 'allow';
  readonly log?: Facts['log'];
}

/** A gateway with two environments and one tenant, unless told otherwise. */
export function dependenciesFor(told: Options = {}): Facts {
  const {
    environments = ['sandbox', 'production'],
    tenants = 1,
    affinities = [],
    ifStateFails = 'refuse',
  } = told;
  const { active = undefined } = 'active' in told ? told : { active: 'sandbox' };
  const record = active === undefined ? undefined : { environment: active, version: 1, epoch: 'first' };
  return {
    environments: new Map(environments.map((name) => [name, environmentOf(name)])),
    tenants,
    ifStateFails,
    log: told.log ?? captureLog().log,
    active: {
      known: () => record,
      read: async () => record ?? outOfReach(),
      switchTo: async () => outOfReach(),
      stateWasEmptied: () => false,
    },
    stateProblem: () => undefined,
    affinity: {
      environmentsOf: async () => affinities,
      recordEnvironment: async () => {},
      flush: async () => {},
    },
  };
}

/** The same, but the shared state cannot be reached: what this instance knew it still knows. */
export function withUnreachableState(facts: Facts): Facts {
  return {
    ...facts,
    active: { ...facts.active, read: async () => outOfReach() },
    affinity: { ...facts.affinity, environmentsOf: async () => outOfReach() },
  };
}

/** The same, with a place where what is learnt can be seen. */
export function withRecordedAffinities(
  facts: Facts,
  learn: (id: string, home: PaymentAffinity, lasts: AffinityRetention) => void,
): Facts {
  return {
    ...facts,
    affinity: { ...facts.affinity, recordEnvironment: async (id, home, lasts) => learn(id, home, lasts) },
  };
}

function outOfReach(): never {
  throw new GatewayError('STATE_UNAVAILABLE', 'The shared state cannot be reached.');
}

const environmentOf = (name: string): Environment => ({
  name,
  origin: `https://${name}.bank.example`,
  basePath: '',
  standardVersion: '1.3.11',
});
