/** What the choice of an environment is told, for a test that says it all itself. */

import type { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import type { Home, Lasting } from '../../../src/environments/payment-record.ts';
import type { Environment } from '../../../src/flow/environment.ts';
import { GatewayError } from '../../../src/flow/errors.ts';
import { createLogLines } from '../../kit/log-lines.ts';

type Facts = Parameters<typeof chooseEnvironment>[0];

interface Told {
  readonly environments?: readonly string[];
  readonly tenants?: number;
  /** The active environment; `undefined` if nobody could read it yet. */
  readonly active?: string | undefined;
  /** Where the payment lives; empty if nobody remembers it. */
  readonly homes?: readonly Home[];
  readonly ifStateFails?: 'refuse' | 'allow';
  readonly log?: Facts['log'];
}

/** A gateway with two environments and one tenant, unless told otherwise. */
export function factsOf(told: Told = {}): Facts {
  const { environments = ['sandbox', 'production'], tenants = 1, homes = [], ifStateFails = 'refuse' } = told;
  const { active = undefined } = 'active' in told ? told : { active: 'sandbox' };
  const record = active === undefined ? undefined : { environment: active, version: 1, epoch: 'first' };
  return {
    environments: new Map(environments.map((name) => [name, environmentOf(name)])),
    tenants,
    ifStateFails,
    log: told.log ?? createLogLines().log,
    active: {
      known: () => record,
      read: async () => record ?? outOfReach(),
      change: async () => outOfReach(),
      stateWasEmptied: () => false,
    },
    stateTrouble: () => undefined,
    affinity: { homesOf: async () => homes, learn: async () => {}, settle: async () => {} },
  };
}

/** The same, but the shared state cannot be reached: what this instance knew it still knows. */
export function outOfReachOf(facts: Facts): Facts {
  return {
    ...facts,
    active: { ...facts.active, read: async () => outOfReach() },
    affinity: { ...facts.affinity, homesOf: async () => outOfReach() },
  };
}

/** The same, with a place where what is learnt can be seen. */
export function listeningTo(facts: Facts, learn: (id: string, home: Home, lasts: Lasting) => void): Facts {
  return {
    ...facts,
    affinity: { ...facts.affinity, learn: async (id, home, lasts) => learn(id, home, lasts) },
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
