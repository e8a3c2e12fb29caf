/**
 * The attempts that this instance marked as sending, and then released because the bank did nothing.
 *
 * A failover of the state can lose the release and keep the mark. The entry would then block repeats for as long as this
 * instance lives, and be in doubt afterwards, so this instance releases it again.
 */

export interface ReleasedAttempts {
  add(name: string): void;
  /** Oldest first. */
  names(): readonly string[];
}

/** A failover loses the writes of a few seconds. If it loses more, replicas were missing, and few marks were written. */
const maxNames = 200;

export function createReleasedAttempts(): ReleasedAttempts {
  const names = new Set<string>();
  return {
    add(name) {
      names.add(name);
      for (const oldest of names) {
        if (names.size <= maxNames) return;
        names.delete(oldest);
      }
    },
    names: () => [...names],
  };
}
