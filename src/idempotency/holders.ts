/** Which gateway instances are alive: what a dead one was carrying out is taken over, or in doubt. */

import { randomUUID } from 'node:crypto';
import type { KeyValues, Sets } from '../state/ports.ts';

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
  /** How many instances are alive, this one included. @throws GatewayError STATE_UNAVAILABLE */
  count(): Promise<number>;
}

/** An instance that has not been heard of for so long counts as dead: milliseconds on the state's clock. */
const leaseMs = 6_000;
const keyOf = (holder: string) => `ledger:holder:${holder}`;
/** All that have been counted and not been missed since. */
const listKey = 'ledger:holders';

export function createHolders(keyValues: KeyValues, sets: Sets): Holders {
  const own = randomUUID();
  let introduced = false;

  async function renew(): Promise<void> {
    await keyValues.write(keyOf(own), '', leaseMs);
    introduced = true;
  }

  const isAlive = async (holder: string) =>
    holder === own || (await keyValues.read(keyOf(holder))) !== undefined;

  return {
    own,
    renew,
    isAlive,
    introduce: async () => (introduced ? undefined : renew()),
    async leave() {
      await keyValues.remove(keyOf(own));
      await sets.remove(listKey, own);
    },
    async count() {
      await sets.add(listKey, own); // again each time: another may have missed this one meanwhile
      let alive = 0;
      for (const holder of await sets.members(listKey)) {
        if (await isAlive(holder)) alive += 1;
        else await sets.remove(listKey, holder);
      }
      return alive;
    },
  };
}
