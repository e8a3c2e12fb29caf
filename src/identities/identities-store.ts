/**
 * The record of identities in the shared state, with a copy in memory.
 *
 * The highest version wins: an instance that knows a higher one than the state writes it again.
 */

import { createParseCache } from '../state/parse-cache.ts';
import type { State } from '../state/ports.ts';
import { type IdentitiesRecord, identitiesKey, parseIdentities } from './identities-record.ts';

export interface IdentitiesStore {
  /** The last record that this instance read or wrote; `undefined` if there was none. The same object until it changes. */
  known(): IdentitiesRecord | undefined;
  /**
   * Reads the record, and restores it if the state lost it.
   *
   * @throws GatewayError STATE_UNAVAILABLE, like `update`
   */
  refresh(): Promise<void>;
  /**
   * Changes the record.
   *
   * @param change a pure function, called again if another instance was faster; returns its argument to change nothing
   */
  update(change: (record: IdentitiesRecord) => IdentitiesRecord): Promise<IdentitiesRecord>;
}

const channel = 'identities';
/** Every release writes this key at its first start. */
const activeEnvironmentKey = 'environment:active';

interface StoredRecord {
  /** The stored text, which a compare-and-set needs; `undefined` if there is none. */
  readonly raw: string | undefined;
  readonly record: IdentitiesRecord;
}

export function createIdentitiesStore({
  keyValues,
  pubsub,
}: Pick<State, 'keyValues' | 'pubsub'>): IdentitiesStore {
  let known: IdentitiesRecord | undefined;
  const parseOnce = createParseCache(parseIdentities);

  pubsub.subscribe(channel, () => void refresh().catch(() => {})); // read again every second

  async function refresh(): Promise<void> {
    const { raw } = await load();
    if (raw === undefined && known) await update((record) => record);
  }

  async function update(change: (record: IdentitiesRecord) => IdentitiesRecord): Promise<IdentitiesRecord> {
    const { raw, record } = await load();
    const changed = change(record);
    if (changed === record && raw !== undefined) return record;
    const next = changed === record && known ? record : { ...changed, version: changed.version + 1 };
    const text = JSON.stringify(next);
    const isStored = await (raw === undefined
      ? keyValues.writeIfAbsent(identitiesKey, text)
      : keyValues.replace(identitiesKey, raw, text));
    if (!isStored) return update(change);
    known = next;
    await pubsub.publish(channel, String(next.version)).catch(() => {}); // the other instances read it every second
    return next;
  }

  async function load(): Promise<StoredRecord> {
    const raw = await keyValues.read(identitiesKey);
    const stored = raw === undefined ? undefined : parseOnce(identitiesKey, raw);
    if (stored && stored.version >= (known?.version ?? 0)) {
      known = stored;
      return { raw, record: stored };
    }
    if (known && raw !== undefined) return restore(known, raw);
    if (known) return { raw, record: known };
    const earlierRelease = (await keyValues.read(activeEnvironmentKey)) !== undefined;
    return { raw, record: { v: 1, version: 0, earlierRelease, tenants: [], environments: [] } };
  }

  /** @param stale the stored text, of a lower version */
  async function restore(record: IdentitiesRecord, stale: string): Promise<StoredRecord> {
    const raw = JSON.stringify(record);
    return (await keyValues.replace(identitiesKey, stale, raw)) ? { raw, record } : load();
  }

  return { known: () => known, refresh, update };
}
