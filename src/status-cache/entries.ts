/** The kept answers in the shared state: read, noted, dropped, each change by one compare-and-set on the payment's document. */

import { GatewayError } from '../flow/errors.ts';
import { parsedOnce } from '../state/parsed-once.ts';
import type { KeyValues } from '../state/ports.ts';
import {
  parsed,
  type Sighting,
  type StatusDocument,
  withoutCredential,
  withSighting,
  written,
} from './document.ts';
import { longestCallMs } from './forgetting.ts';

/** What became of a sighting that was to be noted. */
export type Noting =
  /** Nothing newer is known: what was seen may be served. */
  | 'current'
  /** The payment was forgotten, or another status was seen, since the bank was asked: it may be too old to be served. */
  | 'outdated';

/** A document, and the text that stands in the shared state for it. */
export interface KeptDocument extends StatusDocument {
  readonly text: string | undefined;
}

/** Every operation throws GatewayError STATE_UNAVAILABLE if the state cannot be reached, or takes no change. */
export interface StatusEntries {
  read(key: string): Promise<KeptDocument>;
  /** @param asked what was kept when the bank was asked; as a rule it still is, and need not be read again */
  note(key: string, asked: KeptDocument, sighting: Sighting): Promise<Noting>;
  dropCredential(key: string, credential: string): Promise<void>;
}

/** How often a change is tried: each time in vain, somebody else was faster, and of a crowd each keeps all others trying. */
const mostTries = 20;

/**
 * @param keptForMs   how long a document lives after it was last written: longer than any entry in it is of use
 * @param forgetFirst done before a document is read: what is owed to it
 */
export function createEntries(
  keyValues: KeyValues,
  keptForMs: number,
  forgetFirst: (key: string) => Promise<void>,
): StatusEntries {
  const lifeMs = Math.max(keptForMs, longestCallMs);

  const documentIn = parsedOnce((text): KeptDocument => ({ ...parsed(text), text }));
  const kept = async (key: string): Promise<KeptDocument> => {
    const text = await keyValues.read(key);
    return text === undefined ? { ...parsed(text), text } : documentIn(text);
  };

  /**
   * @param first  what the document was when it was last seen
   * @param change what becomes of a document, and what that means; without a document, it stays as it is
   */
  async function changed<Outcome>(
    key: string,
    first: KeptDocument,
    change: (document: KeptDocument) => readonly [Outcome, StatusDocument?],
  ): Promise<Outcome> {
    let document = first;
    for (let tries = 0; tries < mostTries; tries++) {
      const [outcome, next] = change(document);
      if (!next) return outcome;
      if (await put(key, document.text, written(next))) return outcome;
      document = await kept(key);
    }
    throw new GatewayError('STATE_UNAVAILABLE', 'What is kept of a payment could not be changed.');
  }

  const put = (key: string, raw: string | undefined, next: string) =>
    raw === undefined
      ? keyValues.writeIfAbsent(key, next, lifeMs)
      : keyValues.replace(key, raw, next, lifeMs);

  return {
    async note(key, asked, sighting) {
      const isForItselfAlone = Object.keys(sighting.entries).length === 0;
      const first = isForItselfAlone ? await kept(key) : asked; // else nothing might be written, and so nothing compared
      return changed<Noting>(key, first, (document) => {
        const isKnown = document.standing === sighting.standing;
        if (document.generation !== asked.generation) return [isKnown ? 'current' : 'outdated'];
        return isKnown && isForItselfAlone ? ['current'] : ['current', withSighting(document, sighting)];
      });
    },
    async dropCredential(key, credential) {
      await changed(key, await kept(key), (document) => [undefined, withoutCredential(document, credential)]);
    },
    async read(key) {
      await forgetFirst(key);
      return kept(key);
    },
  };
}
