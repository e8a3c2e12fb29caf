/** Which gateway instances are alive: what a dead one was carrying out is taken over, or in doubt. */

import { randomUUID } from 'node:crypto';
import type { KeyValues } from '../state/ports.ts';

export interface Holders {
  /** This run of this instance. */
  readonly own: string;
  /** @throws GatewayError STATE_UNAVAILABLE */
  isAlive(holder: string): Promise<boolean>;
  /** Says that this instance is alive; to be called every second. @throws GatewayError STATE_UNAVAILABLE */
  renew(): Promise<void>;
  /** Makes sure that it has been said. @throws GatewayError STATE_UNAVAILABLE */
  introduce(): Promise<void>;
  /** Says that this instance is gone. @throws GatewayError STATE_UNAVAILABLE */
  leave(): Promise<void>;
}

/** An instance that has not been heard of for so long counts as dead: milliseconds on the state's clock. */
const leaseMs = 6_000;
const keyOf = (holder: string) => `ledger:holder:${holder}`;

export function createHolders(keyValues: KeyValues): Holders {
  const own = randomUUID();
  let introduced = false;

  async function renew(): Promise<void> {
    await keyValues.write(keyOf(own), '', leaseMs);
    introduced = true;
  }

  return {
    own,
    renew,
    isAlive: async (holder) => holder === own || (await keyValues.read(keyOf(holder))) !== undefined,
    introduce: async () => (introduced ? undefined : renew()),
    leave: () => keyValues.remove(keyOf(own)),
  };
}
