/**
 * The epochs of the ledger in the shared state: one for each partition. An instance that knows the epoch notices when the
 * partition loses data. A closed epoch stops all new writes to the partition.
 *
 *   first.<id>            of an empty state
 *   closed.<id>.<former>  replaces the former epoch after a loss; `former` is `none` if the epoch was lost as well
 *   opened.<id>.<former>  replaces the closed epoch when the instances have stored their writes again
 *
 * An id is `<generation>~<random>`. Each loss increases the generation, so that an instance recognizes the epoch in an older
 * snapshot.
 */

import { randomBytes } from 'node:crypto';
import { type KeyValues, parseEpoch, serializeEpoch } from '../state/ports.ts';

export interface StoredEpoch {
  readonly kind: 'first' | 'closed' | 'opened';
  /** The stored text without the sequence number. */
  readonly epoch: string;
  readonly sequence: number;
  /** The id of this epoch. */
  readonly id: string;
  /** The id of the previous epoch; `none` if that was lost. */
  readonly former: string;
}

/** The epoch of each partition; `undefined` if it is missing or not an epoch. */
export type StoredEpochs = ReadonlyMap<string, StoredEpoch | undefined>;

/** What an instance knew of a partition. */
export interface KnownEpoch {
  readonly epoch: string;
  readonly sequence: number;
}

/** Every operation throws GatewayError STATE_UNAVAILABLE. */
export interface Epochs {
  readAll(): Promise<StoredEpochs>;
  /** Creates the epoch of an empty partition, unless there is one. */
  create(partition: string): Promise<void>;
  /**
   * Closes a partition: all instances refuse new writes. Has no effect if its epoch has changed.
   *
   * @param known the last epoch that this instance knew, if it knew one
   */
  close(partition: string, stored: StoredEpoch | undefined, known: KnownEpoch | undefined): Promise<void>;
  /**
   * Opens a closed partition for new writes. Has no effect if its epoch has changed. The sequence counts the writes that were
   * stored again as one: it is 0 only for a partition without writes.
   */
  open(partition: string, closed: StoredEpoch): Promise<void>;
}

export const epochKey = (partition: string): string => `ledger:${partition}epoch`;

export function createEpochs(
  keyValues: Pick<KeyValues, 'read' | 'write' | 'writeIfAbsent' | 'replace'>,
  partitions: readonly string[],
): Epochs {
  const newText = (
    kind: StoredEpoch['kind'],
    generation: number,
    { sequence, id: former }: Pick<StoredEpoch, 'sequence' | 'id'> = { sequence: 0, id: 'none' },
  ) => {
    const id = `${generation}~${randomBytes(9).toString('base64url')}`;
    return serializeEpoch({ epoch: `${kind}.${id}.${former}`, sequence });
  };
  const replace = async (partition: string, stored: StoredEpoch, text: string) =>
    void (await keyValues.replace(epochKey(partition), serializeEpoch(stored), text));

  return {
    async readAll() {
      const texts = await Promise.all(partitions.map((partition) => keyValues.read(epochKey(partition))));
      return new Map(partitions.map((partition, index) => [partition, parseStoredEpoch(texts[index])]));
    },
    create: async (partition) =>
      void (await keyValues.writeIfAbsent(epochKey(partition), newText('first', 0))),
    async close(partition, stored, known) {
      const generation = Math.max(generationOf(stored), generationOf(known)) + 1;
      const text = newText('closed', generation, stored);
      if (stored) return replace(partition, stored, text);
      await keyValues.writeIfAbsent(epochKey(partition), text);
    },
    open: (partition, closed) => {
      const { sequence, id } = closed;
      return replace(
        partition,
        closed,
        newText('opened', generationOf(closed), { sequence: sequence + 1, id }),
      );
    },
  };
}

export const closedIn = (stored: StoredEpochs): readonly (readonly [string, StoredEpoch])[] =>
  [...stored].flatMap(([partition, epoch]) =>
    epoch?.kind === 'closed' ? [[partition, epoch] as const] : [],
  );

/** @param known what this instance knew before it read the stored epoch; `undefined` if it has never read one */
export function hasLostWrites(stored: StoredEpoch | undefined, known: KnownEpoch | undefined): boolean {
  if (!stored) return true;
  if (!known || stored.kind === 'closed') return false; // closed: the loss has been found already
  if (stored.epoch === known.epoch) return stored.sequence < known.sequence;
  // Another instance found the state empty, or an older snapshot was restored.
  return stored.kind === 'first' || generationOf(stored) < generationOf(known);
}

/**
 * The highest number of an instance's own epoch up to which a closed partition holds all writes; -1 if it may hold none.
 *
 * @param known the epoch that the instance wrote under
 */
export function retainedUpTo(closed: StoredEpoch, known: Pick<KnownEpoch, 'epoch'> | undefined): number {
  return known && epochIdOf(known) === closed.former ? closed.sequence : -1;
}

const epochIdOf = ({ epoch }: Pick<KnownEpoch, 'epoch'>): string => epoch.split('.')[1] ?? '';

/** 0 before the first loss. */
function generationOf(known: Pick<KnownEpoch, 'epoch'> | undefined): number {
  return known ? Number.parseInt(epochIdOf(known), 10) || 0 : 0;
}

function parseStoredEpoch(text: string | undefined): StoredEpoch | undefined {
  const stored = parseEpoch(text);
  const [kind, id = '', former = ''] = stored?.epoch.split('.') ?? [];
  if (!stored || (kind !== 'first' && kind !== 'closed' && kind !== 'opened')) return undefined;
  return { ...stored, kind, id, former };
}
