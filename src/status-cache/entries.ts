/** The kept answers in the shared state: read, kept, forgotten, each by one compare-and-set on the payment's document. */

import type { Announcements, KeyValues } from '../state/ports.ts';
import {
  type Entry,
  forgotten,
  parsed,
  type StatusDocument,
  withEntry,
  withoutCredential,
  written,
} from './document.ts';

/** What became of an answer that was to be kept. */
export type Keeping =
  /** It is kept, or need not be: it may be served. */
  | 'current'
  /** The payment was forgotten, or another status was seen, since the bank was asked: it may be too old to be served. */
  | 'outdated';

/** Every operation throws GatewayError STATE_UNAVAILABLE if the state cannot be reached. */
export interface StatusEntries {
  read(key: string): Promise<StatusDocument>;
  /** @param asked the generation under which the bank was asked */
  keep(key: string, asked: string, kept: KeptAnswer): Promise<Keeping>;
  forget(key: string): Promise<void>;
  dropCredential(key: string, credential: string): Promise<void>;
}

export interface KeptAnswer {
  readonly variant: string;
  /** Where the payment stands by this answer: equal for equal statuses. */
  readonly standing: string;
  readonly entry: Entry;
}

/** @param keptForMs how long a document lives after it was last written: longer than any entry in it is of use */
export function createEntries(
  { keyValues, announcements }: { readonly keyValues: KeyValues; readonly announcements: Announcements },
  keptForMs: number,
): StatusEntries {
  const read = async (key: string) => parsed(await keyValues.read(key));

  async function keep(key: string, asked: string, kept: KeptAnswer): Promise<Keeping> {
    const raw = await keyValues.read(key);
    const document = parsed(raw);
    if (document.generation !== asked) return document.standing === kept.standing ? 'current' : 'outdated';
    const next = written(withEntry(document, kept.variant, kept));
    if (next === undefined) return 'current';
    return (await put(key, raw, next)) ? 'current' : keep(key, asked, kept);
  }

  async function dropCredential(key: string, credential: string): Promise<void> {
    const raw = await keyValues.read(key);
    const next = written(withoutCredential(parsed(raw), credential));
    if (raw === undefined || next === undefined || next === raw) return;
    if (!(await put(key, raw, next))) return dropCredential(key, credential);
  }

  const put = (key: string, raw: string | undefined, next: string) =>
    raw === undefined
      ? keyValues.writeIfAbsent(key, next, keptForMs)
      : keyValues.replace(key, raw, next, keptForMs);

  return {
    read,
    keep,
    dropCredential,
    async forget(key) {
      await keyValues.write(key, written(forgotten()) ?? '', keptForMs);
      await announcements.publish('status', key).catch(() => {}); // whoever waits for it looks by himself, too
    },
  };
}
