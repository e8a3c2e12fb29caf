/**
 * What is in doubt: payments of which nobody knows whether the bank has carried them out. Every instance looks for what
 * dead ones have left, and operators resolve what the bank tells them.
 */

import { randomUUID } from 'node:crypto';
import type { KeyValues, Sets } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import { type InDoubtEntry, isInDoubt, isUnresolved, type SendingEntry } from './ledger-entry.ts';
import {
  attemptName,
  type LedgerStore,
  parseAttemptName,
  removeResolved,
  type UnresolvedIndex,
} from './ledger-store.ts';

/** A doubt, under the name by which it is resolved. */
export interface InDoubtWrite {
  readonly id: string;
  readonly entry: InDoubtEntry;
}

export interface InDoubtWrites {
  /** All there are, the oldest first. @throws GatewayError STATE_UNAVAILABLE */
  all(): Promise<readonly InDoubtWrite[]>;
  /** Looks for what dead instances have left. @returns how many doubts there are @throws GatewayError STATE_UNAVAILABLE */
  scan(): Promise<number>;
  /** Puts what a dead instance was sending in doubt, unless its entry has changed. @throws GatewayError STATE_UNAVAILABLE */
  markOrphaned(id: string, raw: string, entry: SendingEntry): Promise<void>;
}

interface InDoubtDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly instanceLeases: InstanceLeases;
  readonly notifyChanged: (id: string) => void;
  readonly log: Log;
}

export function createInDoubtWrites({
  store,
  unresolvedIndex,
  instanceLeases,
  notifyChanged,
  log,
}: InDoubtDependencies): InDoubtWrites {
  /** Doubts that are known to be some: they are not read again every time. */
  let known: ReadonlySet<string> = new Set();

  const unreadable = new Set<string>();

  async function doubtIn(name: string): Promise<InDoubtWrite | undefined> {
    const { id, attempt } = parseAttemptName(name);
    const stored = await store.read(id);
    if (stored && !stored.entry) return tellUnreadable(name);
    const entry = stored?.entry?.attempt === attempt ? stored.entry : undefined;
    if (isInDoubt(entry)) return { id: name, entry };
    if (entry?.step === 'sending' && !(await instanceLeases.isAlive(entry.holder))) {
      await doubtOf(id, stored?.raw ?? '', entry);
      return doubtIn(name);
    }
    if (!isUnresolved(entry)) await removeResolved(name, unresolvedIndex, store);
    return undefined;
  }

  /** It stays as it is, and says so once: repeats of it are told that it is in doubt. */
  function tellUnreadable(id: string): undefined {
    if (unreadable.has(id)) return;
    unreadable.add(id);
    const why = 'the key that it was encrypted with is missing, or a later version of the gateway wrote it';
    log('error', 'an entry of the ledger cannot be read', { id, why });
  }

  async function doubtOf(id: string, raw: string, entry: SendingEntry): Promise<void> {
    const why = 'the gateway instance that sent it is gone';
    await unresolvedIndex.add(attemptName(id, entry.attempt)); // it may have died before it had
    if (!(await store.replace(id, raw, { ...entry, step: 'in-doubt', why }))) return;
    logInDoubt(log, entry, why);
    notifyChanged(id);
  }

  async function look(names: readonly string[]): Promise<readonly InDoubtWrite[]> {
    const found: InDoubtWrite[] = [];
    for (const name of names) {
      const doubt = await doubtIn(name);
      if (doubt) found.push(doubt);
    }
    return found;
  }

  return {
    async all() {
      const found = await look(await unresolvedIndex.list());
      return found.toSorted((one, other) => one.entry.since - other.entry.since);
    },
    async scan() {
      const names = await unresolvedIndex.list();
      const found = await look(names.filter((name) => !known.has(name)));
      known = new Set([...names.filter((name) => known.has(name)), ...found.map(({ id }) => id)]);
      return known.size;
    },
    markOrphaned: doubtOf,
  };
}

/** For whoever watches the log: somebody has to ask the bank. */
export function logInDoubt(
  log: Log,
  { requestId, operation, tenant, environment }: SendingEntry,
  why: string,
): void {
  log('error', 'a payment is in doubt', { requestId, operation, tenant, environment, why });
}

// MERGED HEADER (rewrite or remove):
/* Which gateway instances are alive: what a dead one was carrying out is taken over, or in doubt. */

export interface InstanceLeases {
  /** This run of this instance. */
  readonly ownId: string;
  /** @throws GatewayError STATE_UNAVAILABLE */
  isAlive(holder: string): Promise<boolean>;
  /** Says that this instance is alive; to be called every second. @throws GatewayError STATE_UNAVAILABLE */
  renew(): Promise<void>;
  /** Makes sure that it has been said. @throws GatewayError STATE_UNAVAILABLE */
  register(): Promise<void>;
  /** Says that this instance is gone. @throws GatewayError STATE_UNAVAILABLE */
  deregister(): Promise<void>;
  /** How many instances are alive, this one included. @throws GatewayError STATE_UNAVAILABLE */
  countLive(): Promise<number>;
}

/** An instance that has not been heard of for so long counts as dead: milliseconds on the state's clock. */
const leaseMs = 6_000;
const leaseKey = (holder: string) => `ledger:holder:${holder}`;
/** All that have been counted and not been missed since. */
const instancesKey = 'ledger:holders';

export function createInstanceLeases(keyValues: KeyValues, sets: Sets): InstanceLeases {
  const own = randomUUID();
  let introduced = false;

  async function renew(): Promise<void> {
    await keyValues.write(leaseKey(own), '', leaseMs);
    introduced = true;
  }

  const isAlive = async (holder: string) =>
    holder === own || (await keyValues.read(leaseKey(holder))) !== undefined;

  return {
    ownId: own,
    renew,
    isAlive,
    register: async () => (introduced ? undefined : renew()),
    async deregister() {
      await keyValues.remove(leaseKey(own));
      await sets.remove(instancesKey, own);
    },
    async countLive() {
      await sets.add(instancesKey, own); // again each time: another may have missed this one meanwhile
      let alive = 0;
      for (const holder of await sets.members(instancesKey)) {
        if (await isAlive(holder)) alive += 1;
        else await sets.remove(instancesKey, holder);
      }
      return alive;
    },
  };
}
