/**
 * Recovery from crashed instances and lost responses: the leases that tell which instances are alive, and the writes
 * that are in doubt because it is unknown whether the bank executed them.
 */

import { randomUUID } from 'node:crypto';
import type { KeyValues, Sets } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { Initiators } from './initiators.ts';
import { type InDoubtEntry, isInDoubt, isUnresolved, type SendingEntry, serialized } from './ledger-entry.ts';
import {
  attemptName,
  type LedgerStore,
  parseAttemptName,
  removeResolved,
  type UnresolvedIndex,
} from './ledger-store.ts';
import type { ReleasedAttempts } from './released-attempts.ts';

/** Instance leases: an instance that has not renewed its lease counts as dead. */
export interface InstanceLeases {
  /** Id of this instance, new after every start. */
  readonly ownId: string;
  /** @throws GatewayError STATE_UNAVAILABLE, as every operation here */
  isAlive(instanceId: string): Promise<boolean>;
  /** To be called every second. @param value read by the other instances; without it, the value stays as it is */
  renew(value?: string): Promise<void>;
  /** The values of all live leases by instance. A lease of a release without registrations is empty. */
  live(): Promise<ReadonlyMap<string, string>>;
  /** Ends the lease. */
  deregister(): Promise<void>;
  /** Counts the live instances, this one included. */
  countLive(): Promise<number>;
}

/** The value of a lease before the first registration. */
const startingValue = 'starting';

/** Whether an instance of a release without registrations is alive. @param live the values of all live leases by instance */
export const hasFormerInstance = (live: ReadonlyMap<string, string>): boolean =>
  [...live.values()].includes('');

/** How long the lease of an instance lasts. Measured on the clock of the state, in milliseconds. */
export const instanceLeaseMs = 6_000;
const leaseKey = (instanceId: string) => `ledger:holder:${instanceId}`;
/** The set of instances to count. */
const instancesKey = 'ledger:holders';

/** @param ownId of this instance; new after every start */
export function createInstanceLeases(
  keyValues: KeyValues,
  sets: Sets,
  ownId: string = randomUUID(),
): InstanceLeases {
  let ownValue = startingValue;

  async function live(): Promise<ReadonlyMap<string, string>> {
    const instances = await sets.members(instancesKey);
    const values = await Promise.all(instances.map((instance) => keyValues.read(leaseKey(instance))));
    return new Map(
      instances.flatMap((instance, index) => {
        const value = values[index];
        return value === undefined ? [] : [[instance, value] as const];
      }),
    );
  }

  const isAlive = async (instanceId: string) =>
    instanceId === ownId || (await keyValues.read(leaseKey(instanceId))) !== undefined;

  return {
    ownId,
    isAlive,
    async renew(value = ownValue) {
      ownValue = value;
      await Promise.all([
        sets.add(instancesKey, ownId), // every time: another instance may have removed it as dead
        keyValues.write(leaseKey(ownId), value, instanceLeaseMs),
      ]);
    },
    live,
    async deregister() {
      await keyValues.remove(leaseKey(ownId));
      await sets.remove(instancesKey, ownId);
    },
    async countLive() {
      await sets.add(instancesKey, ownId);
      let count = 0;
      for (const instanceId of await sets.members(instancesKey)) {
        if (await isAlive(instanceId)) count += 1;
        else await sets.remove(instancesKey, instanceId);
      }
      return count;
    },
  };
}

export interface InDoubtWrite {
  /** The name of the attempt; operators resolve it by this name. */
  readonly id: string;
  readonly entry: InDoubtEntry;
}

/** A write in doubt whose effect a read can show. */
export interface ReadableDoubt {
  /** As `InDoubtWrite.id`. */
  readonly id: string;
  readonly operation: string;
  /** The gateway's own path. */
  readonly path: string;
  readonly paymentId: string;
  /** The identity of the environment. */
  readonly environment: string;
}

export interface InDoubtWrites {
  /** All writes in doubt, oldest first. @throws GatewayError STATE_UNAVAILABLE */
  all(): Promise<readonly InDoubtWrite[]>;
  /**
   * Puts the unfinished writes of dead instances in doubt. Releases attempts of this instance again if the state has lost
   * their release.
   *
   * @returns the number of writes in doubt
   * @throws GatewayError STATE_UNAVAILABLE
   */
  scan(): Promise<number>;
  /** The cancellations and updates of a payment that the last scan found in doubt. */
  readableDoubtsOf(paymentId: string): readonly ReadableDoubt[];
  /** Puts an entry of a dead instance in doubt, unless it has changed. @throws GatewayError STATE_UNAVAILABLE */
  markOrphaned(id: string, raw: string, entry: SendingEntry): Promise<void>;
}

interface InDoubtDependencies {
  readonly store: LedgerStore;
  readonly unresolvedIndex: UnresolvedIndex;
  readonly initiators: Pick<Initiators, 'keep'>;
  readonly instanceLeases: InstanceLeases;
  readonly releasedAttempts: ReleasedAttempts;
  readonly notifyChanged: (id: string) => void;
  readonly log: Log;
}

/** So many entries are read in one batch of commands. */
const namesPerBatch = 100;

export function createInDoubtWrites({
  store,
  unresolvedIndex,
  initiators,
  instanceLeases,
  releasedAttempts,
  notifyChanged,
  log,
}: InDoubtDependencies): InDoubtWrites {
  /** Names that the last scan found in doubt; the next scan does not read their entries. */
  let known: ReadonlySet<string> = new Set();
  let readable: readonly ReadableDoubt[] = [];
  /** Names already logged as unreadable. */
  const unreadable = new Set<string>();

  async function readInDoubt(names: readonly string[]): Promise<readonly InDoubtWrite[]> {
    const found: InDoubtWrite[] = [];
    for (let read = 0; read < names.length; read += namesPerBatch) {
      const batch = await Promise.all(names.slice(read, read + namesPerBatch).map(inDoubtWriteOf));
      found.push(...batch.filter((write) => write !== undefined));
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
    const why =
      'its encryption key is missing from state.encryptionKeyFile, or a later version of the gateway wrote it';
    log('error', 'unreadable ledger entry', { id: name, why });
  }

  /** The state may have lost the release of an attempt, and its name in the index. */
  async function releaseAgain(name: string): Promise<void> {
    const { id, attempt } = parseAttemptName(name);
    const stored = await store.read(id);
    if (stored?.entry?.step !== 'sending' || stored.entry.attempt !== attempt) return;
    if (await store.release(id, stored.raw)) notifyChanged(id);
  }

  async function markOrphaned(id: string, raw: string, entry: SendingEntry): Promise<void> {
    const why = 'the gateway instance that sent it has stopped';
    await unresolvedIndex.add(attemptName(id, entry.attempt)); // the instance may have died before it added the name
    if (!(await store.replace(id, raw, serialized({ ...entry, step: 'in-doubt', why })))) return;
    logInDoubt(log, entry, why);
    notifyChanged(id);
  }

  return {
    async all() {
      const found = await readInDoubt(await unresolvedIndex.list());
      return found.toSorted((one, other) => one.entry.since - other.entry.since);
    },
    async scan() {
      for (const name of releasedAttempts.names()) await releaseAgain(name);
      const names = await unresolvedIndex.list();
      const found = await readInDoubt(names.filter((name) => !known.has(name)));
      for (const { entry } of found) await initiators.keep(entry);
      known = new Set([...names.filter((name) => known.has(name)), ...found.map(({ id }) => id)]);
      readable = [...readable, ...found.flatMap(readableIn)].filter(({ id }) => known.has(id));
      return known.size;
    },
    readableDoubtsOf: (paymentId) => readable.filter((one) => one.paymentId === paymentId),
    markOrphaned,
  };
}

const readableOperations: ReadonlySet<string> = new Set(['cancelPayment', 'updatePsuData', 'updatePayment']);

function readableIn({ id, entry }: InDoubtWrite): readonly ReadableDoubt[] {
  const { operation, path, paymentId, environment } = entry;
  if (paymentId === undefined || !readableOperations.has(operation)) return [];
  return [{ id, operation, path, paymentId, environment }];
}

/** Logged at error level if an operator has to ask the bank. */
export function logInDoubt(
  log: Log,
  { requestId, operation, tenant, environment, isFirstFactor }: SendingEntry,
  why: string,
): void {
  const fields = { requestId, operation, tenant, environment, why };
  if (isFirstFactor) log('warn', 'a step of an authorisation is in doubt', fields);
  else log('error', 'a payment is in doubt', fields);
}
