/**
 * Allows new writes only while the shared state holds all earlier ones (ADR 71).
 *
 * All instances take part in a round. The running servers and the epochs identify it. Before an instance registers for it, it
 * stores its own writes again if the state may have lost them. New writes are allowed when all known instances have
 * registered for the same round and no partition is closed.
 *
 * - After a restart or a failover of the state, a new round begins.
 * - The first instance that finds a loss closes the partition: a new round begins. When all have registered and remember
 *   everything that may be lost, one of them opens the partition: another round begins.
 */

import { GatewayError } from '../request/errors.ts';
import type { Fence, KeyValues, State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import { createAwaitedInstances } from './awaited-instances.ts';
import { closedIn, createEpochs, hasLostWrites, type StoredEpochs } from './epochs.ts';
import { createKnownInstances } from './known-instances.ts';
import { partitionOf } from './ledger-store.ts';
import { causeOf } from './loss-cause.ts';
import { createLossCoverage } from './loss-coverage.ts';
import { createOwnEpochs } from './own-epochs.ts';
import type { OwnWrites } from './own-writes.ts';
import { hasFormerInstance, type InstanceLeases, instanceLeaseMs } from './recovery.ts';
import { introducerOf, isNewState, progressOf, roundOf, serializeRegistration } from './registration.ts';
import type { RestoreWrite } from './restore-write.ts';

export interface LossGuard {
  /**
   * The fence for a write to an entry.
   *
   * @throws GatewayError STATE_UNAVAILABLE with the cause, while new writes are refused
   */
  fenceOf(id: string): Fence;
  /**
   * Checks the state, and renews the lease of this instance. To be called every second.
   *
   * @throws GatewayError STATE_UNAVAILABLE
   */
  verify(): Promise<void>;
  /** Whether no restart, loss or suspension is known since the last check. */
  isAllowed(): boolean;
  /**
   * Checks the state if new writes are refused. Waits up to `allowedWaitMs` for a check that normally ends soon. Never fails:
   * new writes may still be refused afterwards.
   */
  waitUntilAllowed(): Promise<void>;
  /**
   * Whether new writes are allowed, the state has lost nothing since the fence was returned, and the other instances know this
   * one. To be called after the mark: a request is sent only then.
   */
  isCurrent(id: string, fence: Fence): boolean;
  /** Refuses new writes until the next check has passed. To be called after an EpochMismatchError. */
  recheck(): void;
  report(): LossReport;
  /**
   * Allows new writes although earlier ones may be lost. Instances that still run register first.
   *
   * @returns false if new writes are not refused
   * @throws GatewayError STATE_UNAVAILABLE
   */
  acceptLoss(): Promise<boolean>;
}

export interface LossReport {
  /** `checking`: the state may have lost writes; `lost`: it has. New writes are refused in both cases. */
  readonly status: 'ok' | 'checking' | 'lost';
  /** Why new writes are refused, and what ends it. */
  readonly cause?: string;
  /** Whether this normally ends within a second, so that a write waits for it. */
  readonly endsSoon?: boolean;
  /** Since when new writes are refused: milliseconds since 1970. */
  readonly since?: number;
  /** Instances that may have sent writes and have not registered yet. */
  readonly missing: readonly MissingInstance[];
  /** Whether no instance remembers all writes that the state may have lost. */
  readonly isUncovered: boolean;
}

/** Whether new writes may be refused until an operator acts: data is lost, or instances are missing. */
export const isIncident = ({ status, missing }: LossReport): boolean =>
  status === 'lost' || missing.length > 0;

/** The ids of the missing instances, for operators; `undefined` if there are none. */
export const idsOf = ({ missing }: LossReport): string | undefined =>
  missing.length === 0 ? undefined : missing.map(({ instance }) => instance).join(', ');

export interface MissingInstance {
  readonly instance: string;
  /** Milliseconds since 1970; `undefined` if only another instance knows it. */
  readonly lastSeen: number | undefined;
}

export interface LossSettings {
  /** `state.afterLoss` */
  readonly afterLoss: 'refuse' | 'resume';
  /** `idempotency.window`, in milliseconds. */
  readonly windowMs: number;
  /** `shaping.expectedInstances` */
  readonly expectedInstances: number;
  /** Whether a release without epochs has used this state. */
  readonly isUpgraded: boolean;
}

export interface LossGuardDependencies {
  readonly state: Pick<State, 'partitions' | 'identity' | 'onDisconnect'>;
  /** Not encrypted: the state compares epochs itself. */
  readonly keyValues: KeyValues;
  readonly instanceLeases: InstanceLeases;
  readonly ownWrites: OwnWrites;
  /** Stores a write of this instance again, unless the state holds it. */
  readonly restore: RestoreWrite;
  readonly settings: () => LossSettings;
  readonly log: Log;
}

/** Interval of the checks while a write waits. Milliseconds. */
const retryMs = 100;
/** How long an instance that finds an empty state waits for others, which may know of lost writes. Milliseconds. */
const emptyStateWaitMs = 1_000;
/** Up to this time without the state, an instance assumes that the others had none either. Milliseconds. */
const maxOutageMs = 60_000;
/** How many writes are stored again at a time. */
const restoredAtOnce = 256;
/** Limit of consecutive checks: each change that a check makes requires another one. */
const maxChecks = 6;
/** How long a write waits for checks that normally end soon. Milliseconds. */
const allowedWaitMs = 1_200;

const acceptedKey = 'ledger:accepted-loss';
const acceptedMs = 3_600_000;

type CheckResult = 'settled' | 'changed';

export function createLossGuard({
  state,
  keyValues,
  instanceLeases,
  ownWrites,
  restore,
  settings,
  log,
}: LossGuardDependencies): LossGuard {
  const { partitions } = state;
  const epochs = createEpochs(keyValues, partitions);
  const coverage = createLossCoverage(() => settings().windowMs);
  const ownEpochs = createOwnEpochs(partitions);
  const instances = createKnownInstances(instanceLeases.ownId);
  const awaitedInstances = createAwaitedInstances(keyValues, () => settings().windowMs);
  let report: LossReport = { status: 'checking', cause: firstCheck, missing: [], isUncovered: false };
  /** The round for which new writes are allowed. */
  let openRound: string | undefined;
  /** The last round for which this instance has stored its own writes again. */
  let prepared: { readonly round: string; readonly identity: string } | undefined;
  /** Since when this instance knows the last round: milliseconds of `performance.now()`. */
  let roundSinceMs = 0;
  let ownRenewals = 0;
  /** When the last check and the last renewal of the lease began: milliseconds of `performance.now()`. */
  let checkedAtMs = Number.POSITIVE_INFINITY;
  let renewedAtMs = Number.POSITIVE_INFINITY;
  /** Whether others may have started, sent writes and ended while this instance was suspended or had no state. */
  let wasAbsent = false;
  let hasOpened = false;
  /** Whether the others knew this instance when it last renewed a lease that had expired. */
  let isKnownToOthers = true;
  /** Whether a connection was lost after the last check began. */
  let wasDisconnected = false;
  let emptySinceMs: number | undefined;
  let running: Promise<void> | undefined;

  state.onDisconnect(() => {
    wasDisconnected = true;
    if (openRound !== undefined) refuse({ status: 'checking', cause: disconnected });
  });

  function refuse(next: Partial<LossReport> & Pick<LossReport, 'status' | 'cause'>): void {
    const since = (openRound === undefined ? report.since : undefined) ?? Date.now();
    const found: LossReport = { missing: [], isUncovered: false, ...next, since };
    const missing = idsOf(found);
    if (isIncident(found) && (found.cause !== report.cause || missing !== idsOf(report)))
      log('error', found.status === 'lost' ? lossMessage : missingMessage, { why: found.cause, missing });
    report = found;
    openRound = undefined;
  }

  function allow(round: string): void {
    if (isIncident(report)) log('info', 'new payments are accepted again');
    report = { status: 'ok', missing: [], isUncovered: false };
    openRound = round;
    hasOpened = true;
  }

  /** An instance that was suspended for longer than its lease does not write before the others know it again. */
  const isAllowed = () =>
    openRound !== undefined && isKnownToOthers && performance.now() - renewedAtMs <= instanceLeaseMs;

  async function waitUntilAllowed(): Promise<void> {
    const untilMs = performance.now() + allowedWaitMs;
    while (!isAllowed()) {
      await verify().catch(() => {}); // the report says why
      const endsSoon = openRound !== undefined || report.endsSoon;
      if (isAllowed() || !endsSoon || performance.now() >= untilMs) return;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  function verify(): Promise<void> {
    running ??= checkUntilSettled().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function checkUntilSettled(): Promise<void> {
    for (let checks = 0; checks < maxChecks; checks++) if ((await check()) === 'settled') return;
  }

  async function check(): Promise<CheckResult> {
    const startedAtMs = performance.now();
    wasAbsent ||= startedAtMs - checkedAtMs > instanceLeaseMs || startedAtMs - renewedAtMs > maxOutageMs;
    checkedAtMs = startedAtMs;
    wasDisconnected = false;
    if (startedAtMs - renewedAtMs > instanceLeaseMs) isKnownToOthers = false;
    const known = new Map([...ownEpochs.fences].map(([partition, fence]) => [partition, { ...fence }]));
    const identity = await state.identity();
    const stored = await epochs.readAll();
    if (known.size === 0) {
      const others = await instanceLeases.live();
      if (isNewState(stored, others)) return createState(stored);
    }
    const lost = partitions.filter((partition) => hasLostWrites(stored.get(partition), known.get(partition)));
    if (lost.length > 0) {
      refuse({ status: 'lost', cause: lossFound });
      await closeAll(lost, stored);
      return 'changed';
    }

    const round = roundOf(identity, stored);
    if (openRound !== undefined && round !== openRound)
      refuse({ status: 'checking', cause: restarted, endsSoon: true });
    if (wasAbsent) coverage.onAbsence();
    const covers = coverage.covers(stored, ownEpochs.fences);
    if (prepared?.round !== round) {
      roundSinceMs = startedAtMs;
      await prepare(stored, identity !== prepared?.identity);
    }
    prepared = { round, identity };
    await register(round, covers);
    renewedAtMs = startedAtMs;
    const live = await instanceLeases.live();
    if (!hasOpened) instances.retain(live);
    const isUnknown = instances.note(live) && settings().expectedInstances > 1;
    if (hasFormerInstance(live) || (!hasOpened && settings().isUpgraded)) coverage.onFormerRelease(stored);
    isKnownToOthers ||= !isUnknown;
    if (round === openRound) {
      noteProgress(stored, live);
      return 'settled';
    }
    if (isUnknown) {
      refuse({ status: 'checking', cause: unknownToOthers, endsSoon: true });
      return 'settled';
    }
    return finishRound(round, stored, live);
  }

  async function createState(stored: StoredEpochs): Promise<CheckResult> {
    emptySinceMs ??= performance.now();
    const mustWait = settings().expectedInstances > 1 && performance.now() - emptySinceMs < emptyStateWaitMs;
    if (mustWait) {
      refuse({ status: 'checking', cause: emptyState, endsSoon: true });
      await instanceLeases.renew();
      return 'settled';
    }
    const missing = partitions.filter((partition) => !stored.get(partition));
    await Promise.all(missing.map(epochs.create));
    return 'changed';
  }

  /** Stores again what the state may have lost of the own writes, and then writes under the epochs that are not closed. */
  async function prepare(stored: StoredEpochs, isOtherServer: boolean): Promise<void> {
    const lost = ownEpochs.lostIn(ownWrites.all(), stored, isOtherServer);
    for (let from = 0; from < lost.length; from += restoredAtOnce)
      await Promise.all(lost.slice(from, from + restoredAtOnce).map(restore));

    const adopted = ownEpochs.adopt(stored);
    for (const [partition, { sequence }] of adopted) coverage.start(partition, sequence);
    if (adopted.size > 0) ownWrites.setSequences((id) => adopted.get(partitionOf(id, partitions))?.sequence);
    const isReopened = [...adopted.values()].some(({ kind }) => kind === 'opened');
    // The others had registered, or an operator accepted that they are gone: they cannot send under a former epoch.
    if (isReopened && closedIn(stored).length === 0) instances.retain(await instanceLeases.live());
  }

  /** Tells the other instances that this one has stored its own writes again in this round. */
  function register(round: string, covers: boolean): Promise<void> {
    const registration = {
      round,
      renewal: ++ownRenewals,
      isOpen: round === openRound,
      peers: instances.ids(),
      covers,
      complete: ownWrites.isComplete(),
    };
    return instanceLeases.renew(serializeRegistration(registration));
  }

  async function finishRound(
    round: string,
    stored: StoredEpochs,
    live: ReadonlyMap<string, string>,
  ): Promise<CheckResult> {
    const closed = closedIn(stored);
    const required = hasOpened ? instances.ids() : await awaitedInstances.read(stored);
    const progress = progressOf(round, required, live);
    const isAccepted = settings().afterLoss === 'resume' || (await keyValues.read(acceptedKey)) === round;
    // An instance that runs registers within the time of a lease, also if the state has lost its lease.
    const mayComeYet = performance.now() - roundSinceMs < instanceLeaseMs;
    const awaited = progress.missing.filter((instance) => !isAccepted || mayComeYet || live.has(instance));
    const isUncovered = closed.length > 0 && !progress.isCovered && !isAccepted;
    if (awaited.length > 0 || isUncovered) {
      const missing = awaited.map((instance) => ({ instance, lastSeen: instances.lastSeen(instance) }));
      const status = closed.length > 0 ? 'lost' : 'checking';
      refuse({ status, missing, isUncovered, cause: causeOf(status, awaited.length, isAccepted) });
      // After a loss, the closed partition remains. An instance that has not opened yet waits only for those of others.
      if (hasOpened && closed.length === 0) await awaitedInstances.write(stored, awaited);
      return 'settled';
    }
    if (closed.length > 0) {
      await Promise.all(closed.map(([partition, epoch]) => epochs.open(partition, epoch)));
      return 'changed';
    }
    if (progress.missing.length > 0) {
      await closeAll(partitions, stored); // a missing instance may still run: it must not send under the present epoch
      return 'changed';
    }
    await awaitedInstances.remove(stored);
    if (wasDisconnected) return 'changed';
    instances.retain(live);
    const introducer = hasOpened ? undefined : introducerOf(instanceLeases.ownId, round, live);
    if (introducer) {
      instances.add(introducer.peers);
      coverage.onIntroduction();
    }
    allow(round);
    return 'settled';
  }

  const closeAll = (all: readonly string[], stored: StoredEpochs) =>
    Promise.all(
      all.map((partition) => epochs.close(partition, stored.get(partition), ownEpochs.fences.get(partition))),
    );

  function noteProgress(stored: StoredEpochs, live: ReadonlyMap<string, string>): void {
    ownEpochs.noteSequences(stored);
    const hasEnded = instances.removeEnded(live); // the last writes of an ended instance are in `stored`
    if (hasEnded || wasAbsent) coverage.onInstanceEnd(stored);
    wasAbsent = false;
  }

  return {
    verify,
    isAllowed,
    waitUntilAllowed,
    report: () => report,
    isCurrent: (id, fence) => isAllowed() && ownEpochs.fenceOf(id) === fence,
    fenceOf(id) {
      const fence = openRound === undefined ? undefined : ownEpochs.fenceOf(id);
      if (fence) return fence;
      const text = `${report.cause ?? restarted} Nothing was sent; try again.`;
      throw new GatewayError('STATE_UNAVAILABLE', text);
    },
    recheck() {
      refuse({ status: 'checking', cause: restarted, endsSoon: true });
    },
    async acceptLoss() {
      await verify();
      if (openRound !== undefined) return false;
      const identity = await state.identity();
      const found = await epochs.readAll();
      if (closedIn(found).length === 0) await closeAll(partitions, found);
      await keyValues.write(acceptedKey, roundOf(identity, await epochs.readAll()), acceptedMs);
      await verify();
      return true;
    },
  };
}

const lossMessage = 'the shared state has lost data; new payments are refused';
const missingMessage =
  'the shared state was restarted, and an instance has not registered again; new payments are refused';
const firstCheck = 'The shared state has not been checked yet.';
const restarted = 'The shared state was restarted or lost; the gateway is checking which data it still has.';
const disconnected = 'The connection to the shared state is lost.';
const emptyState = 'The shared state is empty; the gateway is checking whether other instances have used it.';
const unknownToOthers = 'The other instances have not confirmed the registration of this instance yet.';
const lossFound = 'The shared state has lost data; the instances are storing their payments again.';
