/**
 * The active environment, which receives new payments: a row of the database that operators change at run time. The configured
 * environment is only the initial value.
 *
 * A new payment goes to the environment that its claim returns. What this instance knows, at most a second old, is for the rest.
 */

import type { PubSub } from '../state/ports.ts';
import type { ActiveEnvironmentTable, StoredActiveEnvironment } from '../store/active-environment.ts';
import type { Log } from '../telemetry/log.ts';

const channel = 'environment';

export interface ActiveEnvironment {
  /** The newest value that this instance has read; `undefined` if it has not read one yet. */
  known(): StoredActiveEnvironment | undefined;
  /** Reads the value. In a new database, the configured environment becomes active. @throws DatabaseError */
  read(): Promise<StoredActiveEnvironment>;
  /** After a failover of the database: stores a switch that it has lost. @throws DatabaseError */
  restore(): Promise<void>;
  /**
   * Makes this environment the active one on all instances.
   *
   * @throws DatabaseError; the environment may have been switched nevertheless, unless `hasNoEffect`
   */
  switchTo(
    environment: string,
  ): Promise<{ readonly from: StoredActiveEnvironment; readonly to: StoredActiveEnvironment }>;
}

/** @param configured the initial value of a new database */
export function createActiveEnvironment(
  table: ActiveEnvironmentTable,
  pubsub: PubSub,
  configured: string,
  log: Log,
): ActiveEnvironment {
  let known: StoredActiveEnvironment | undefined;

  pubsub.subscribe(channel, () => void read().catch(() => {})); // the heartbeat reads it again

  const read = async () => adopt(await table.readOr(configured));

  const switchTo: ActiveEnvironment['switchTo'] = async (environment) => {
    const from = await table.readOr(configured);
    const to = await table.switchTo(environment, from.version);
    if (!to) return switchTo(environment); // another operator was faster
    adopt(to);
    await pubsub.publish(channel, String(to.version)).catch(() => {}); // the other instances read it every second
    return { from, to };
  };

  /** A lower version is the answer to a read that began before the last switch. */
  function adopt(stored: StoredActiveEnvironment): StoredActiveEnvironment {
    if (known && stored.version < known.version) return known;
    if (known?.environment !== stored.environment) {
      log('info', 'active environment read from the database', {
        environment: stored.environment,
        environmentVersion: stored.version,
      });
    }
    known = stored;
    return stored;
  }

  return {
    known: () => known,
    read,
    switchTo,
    restore: async () => known && table.restore(known),
  };
}
