/**
 * Recovery from crashed instances and lost responses: the leases that tell which instances are alive, and the writes
 * that are in doubt because it is unknown whether the bank executed them.
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

/** Instance leases: an instance that has not renewed its lease counts as dead. */
export interface InstanceLeases {
  /** Id of this instance, new after every start. */
  readonly ownId: string;
  /** @throws GatewayError STATE_UNAVAILABLE, as every operation here */
  isAlive(instanceId: string): Promise<boolean>;
  /** To be called every second. */
  renew(): Promise<void>;
  /** Acquires the lease, unless this instance already did. */
  register(): Promise<void>;
  /** Ends the lease. */
  deregister(): Promise<void>;
  /** Counts the live instances, this one included. */
  countLive(): Promise<number>;
}

/** Measured on the clock of the state, in milliseconds. */
const leaseMs = 6_000;
const leaseKey = (instanceId: string) => `ledger:holder:${instanceId}`;
/** The set of instances to count. */
const instancesKey = 'ledger:holders';

export function createInstanceLeases(keyValues: KeyValues, sets: Sets): InstanceLeases {
  const ownId = randomUUID();
  let isRegistered = false;

  async function renew(): Promise<void> {
    await keyValues.write(leaseKey(ownId), '', leaseMs);
    isRegistered = true;
  }

  const isAlive = async (instanceId: string) =>
    instanceId === ownId || (await keyValues.read(leaseKey(instanceId))) !== undefined;

  return {
    ownId,
    isAlive,
    renew,
    register: async () => (isRegistered ? undefined : renew()),
    async deregister() {
      await keyValues.remove(leaseKey(ownId));
      await sets.remove(instancesKey, ownId);
    },
    async countLive() {
      await sets.add(instancesKey, ownId); // every time: another instance may have removed it as dead
      let live = 0;
      for (const instanceId of await sets.members(instancesKey)) {
        if (await isAlive(instanceId)) live += 1;
        else await sets.remove(instancesKey, instanceId);
      }
      return live;
    },
  };
}

export interface InDoubtWrite {
  /** The name of the attempt; operators resolve it by this name. */
  readonly id: string;
  readonly entry: InDoubtEntry;
}

export interface InDoubtWrites {
  /** All writes in doubt, oldest first. @throws GatewayError STATE_UNAVAILABLE */
  all(): Promise<readonly InDoubtWrite[]>;
  /** Puts what dead instances were sending in doubt. @returns the number of writes in doubt @throws GatewayError STATE_UNAVAILABLE */
  scan(): Promise<number>;
  /** Puts an entry of a dead instance in doubt, unless it has changed. @throws GatewayError STATE_UNAVAILABLE */
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
  /** Names that the last scan found in doubt; the next scan does not read their entries. */
  let known: ReadonlySet<string> = new Set();
  /** Names already logged as unreadable. */
  const unreadable = new Set<string>();

  async function readInDoubt(names: readonly string[]): Promise<readonly InDoubtWrite[]> {
    const found: InDoubtWrite[] = [];
    for (const name of names) {
      const write = await inDoubtWriteOf(name);
      if (write) found.push(write);
    }
    return found;
  }

  async function inDoubtWriteOf(name: string): Promise<InDoubtWrite | undefined> {
    const { id, attempt } = parseAttemptName(name);
    const stored = await store.read(id);
    if (stored && !stored.entry) return logUnreadable(name);
    const entry = stored?.entry?.attempt === attempt ? stored.entry : undefined;
    if (isInDoubt(entry)) return { id: name, entry };
    if (entry?.step === 'sending' && !(await instanceLeases.isAlive(entry.holder))) {
      await markOrphaned(id, stored?.raw ?? '', entry);
      return inDoubtWriteOf(name);
    }
    if (!isUnresolved(entry)) await removeResolved(name, unresolvedIndex, store);
    return undefined;
  }

  /** The entry stays as it is: repeats are answered with DUPLICATE_IN_DOUBT. */
  function logUnreadable(name: string): undefined {
    if (unreadable.has(name)) return;
    unreadable.add(name);
    const why = 'the key that it was encrypted with is missing, or a later version of the gateway wrote it';
    log('error', 'an entry of the ledger cannot be read', { id: name, why });
  }

  async function markOrphaned(id: string, raw: string, entry: SendingEntry): Promise<void> {
    const why = 'the gateway instance that sent it is gone';
    await unresolvedIndex.add(attemptName(id, entry.attempt)); // the instance may have died before it added the name
    if (!(await store.replace(id, raw, { ...entry, step: 'in-doubt', why }))) return;
    logInDoubt(log, entry, why);
    notifyChanged(id);
  }

  return {
    async all() {
      const found = await readInDoubt(await unresolvedIndex.list());
      return found.toSorted((one, other) => one.entry.since - other.entry.since);
    },
    async scan() {
      const names = await unresolvedIndex.list();
      const found = await readInDoubt(names.filter((name) => !known.has(name)));
      known = new Set([...names.filter((name) => known.has(name)), ...found.map(({ id }) => id)]);
      return known.size;
    },
    markOrphaned,
  };
}

/** Logged at error level, because an operator has to ask the bank. */
export function logInDoubt(
  log: Log,
  { requestId, operation, tenant, environment }: SendingEntry,
  why: string,
): void {
  log('error', 'a payment is in doubt', { requestId, operation, tenant, environment, why });
}
