/**
 * What is in doubt: payments of which nobody knows whether the bank has carried them out. Every instance looks for what
 * dead ones have left, and operators resolve what the bank tells them.
 */

import type { Log } from '../telemetry/log.ts';
import type { Entries } from './entries.ts';
import { type Doubtful, isDoubtful, isOpen, type Sending } from './entry.ts';
import type { Holders } from './holders.ts';
import { drop, namedBy, nameOf, type OpenEntries } from './open-entries.ts';

/** A doubt, under the name by which it is resolved. */
export interface Doubt {
  readonly id: string;
  readonly entry: Doubtful;
}

export interface Doubts {
  /** All there are, the oldest first. @throws GatewayError STATE_UNAVAILABLE */
  all(): Promise<readonly Doubt[]>;
  /** Looks for what dead instances have left. @returns how many doubts there are @throws GatewayError STATE_UNAVAILABLE */
  lookAround(): Promise<number>;
  /** Puts what a dead instance was sending in doubt, unless its entry has changed. @throws GatewayError STATE_UNAVAILABLE */
  doubtOf(id: string, raw: string, entry: Sending): Promise<void>;
}

interface Parts {
  readonly entries: Entries;
  readonly open: OpenEntries;
  readonly holders: Holders;
  readonly changed: (id: string) => void;
  readonly log: Log;
}

export function createDoubts({ entries, open, holders, changed, log }: Parts): Doubts {
  /** Doubts that are known to be some: they are not read again every time. */
  let known: ReadonlySet<string> = new Set();

  const unreadable = new Set<string>();

  async function doubtIn(name: string): Promise<Doubt | undefined> {
    const { id, attempt } = namedBy(name);
    const stored = await entries.read(id);
    if (stored && !stored.entry) return tellUnreadable(name);
    const entry = stored?.entry?.attempt === attempt ? stored.entry : undefined;
    if (isDoubtful(entry)) return { id: name, entry };
    if (entry?.step === 'sending' && !(await holders.isAlive(entry.holder))) {
      await doubtOf(id, stored?.raw ?? '', entry);
      return doubtIn(name);
    }
    if (!isOpen(entry)) await drop(name, open, entries);
    return undefined;
  }

  /** It stays as it is, and says so once: repeats of it are told that it is in doubt. */
  function tellUnreadable(id: string): undefined {
    if (unreadable.has(id)) return;
    unreadable.add(id);
    const why = 'the key that it was encrypted with is missing, or a later version of the gateway wrote it';
    log('error', 'an entry of the ledger cannot be read', { id, why });
  }

  async function doubtOf(id: string, raw: string, entry: Sending): Promise<void> {
    const why = 'the gateway instance that sent it is gone';
    await open.add(nameOf(id, entry.attempt)); // it may have died before it had
    if (!(await entries.replace(id, raw, { ...entry, step: 'in-doubt', why }))) return;
    logDoubt(log, entry, why);
    changed(id);
  }

  async function look(names: readonly string[]): Promise<readonly Doubt[]> {
    const found: Doubt[] = [];
    for (const name of names) {
      const doubt = await doubtIn(name);
      if (doubt) found.push(doubt);
    }
    return found;
  }

  return {
    async all() {
      const found = await look(await open.names());
      return found.toSorted((one, other) => one.entry.since - other.entry.since);
    },
    async lookAround() {
      const names = await open.names();
      const found = await look(names.filter((name) => !known.has(name)));
      known = new Set([...names.filter((name) => known.has(name)), ...found.map(({ id }) => id)]);
      return known.size;
    },
    doubtOf,
  };
}

/** For whoever watches the log: somebody has to ask the bank. */
export function logDoubt(
  log: Log,
  { requestId, operation, tenant, environment }: Sending,
  why: string,
): void {
  log('error', 'a payment is in doubt', { requestId, operation, tenant, environment, why });
}
