/**
 * What is in doubt: payments of which nobody knows whether the bank has carried them out. Every instance looks for what
 * dead ones have left, and operators resolve what the bank tells them.
 */

import type { Log } from '../telemetry/log.ts';
import type { Entries } from './entries.ts';
import { type Doubtful, isDoubtful, isOpen, type Sending } from './entry.ts';
import type { Holders } from './holders.ts';
import type { OpenEntries } from './open-entries.ts';

/** A doubt, under the id by which it is resolved. */
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

  async function doubtIn(id: string): Promise<Doubt | undefined> {
    const stored = await entries.read(id);
    const entry = stored?.entry;
    if (isDoubtful(entry)) return { id, entry };
    if (stored && !entry) return undefined; // nobody can read it: it stays
    if (entry?.step === 'sending' && !(await holders.isAlive(entry.holder))) {
      await doubtOf(id, stored?.raw ?? '', entry);
      return doubtIn(id);
    }
    if (!isOpen(entry)) await drop(id);
    return undefined;
  }

  /** It may be opened again in between: then it must not be missing in the index. */
  async function drop(id: string): Promise<void> {
    await open.remove(id);
    if (isOpen((await entries.read(id))?.entry)) await open.add(id);
  }

  async function doubtOf(id: string, raw: string, entry: Sending): Promise<void> {
    const why = 'the gateway instance that sent it is gone';
    if (!(await entries.replace(id, raw, { ...entry, step: 'in-doubt', why }))) return;
    logDoubt(log, entry, why);
    changed(id);
  }

  async function look(ids: readonly string[]): Promise<readonly Doubt[]> {
    const found: Doubt[] = [];
    for (const id of ids) {
      const doubt = await doubtIn(id);
      if (doubt) found.push(doubt);
    }
    return found;
  }

  return {
    async all() {
      const found = await look(await open.ids());
      return found.toSorted((one, other) => one.entry.since - other.entry.since);
    },
    async lookAround() {
      const ids = await open.ids();
      const found = await look(ids.filter((id) => !known.has(id)));
      known = new Set([...ids.filter((id) => known.has(id)), ...found.map(({ id }) => id)]);
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
