/** Who listens to which channel within this process. */

/** Listeners by channel. */
export interface Listeners {
  /** Lets a listener hear what is told from now on. @returns stops it; a second call does nothing */
  add(channel: string, listener: (message: string) => void): () => void;
  tell(channel: string, message: string): void;
  /** The channels that somebody listens to. */
  channels(): readonly string[];
}

/** What to do when a channel gets its first listener, or loses its last. */
interface Turns {
  readonly first: (channel: string) => void;
  readonly last: (channel: string) => void;
}

/** Nobody listens yet. */
export function createListeners(turns?: Turns): Listeners {
  const byChannel = new Map<string, Set<(message: string) => void>>();

  const leave = (channel: string, listener: (message: string) => void) => {
    const others = byChannel.get(channel);
    if (!others?.delete(listener) || others.size > 0) return;
    byChannel.delete(channel);
    turns?.last(channel);
  };

  return {
    add(channel, listener) {
      const own = (message: string) => listener(message); // the same function may listen twice
      const others = byChannel.get(channel);
      others?.add(own);
      if (!others) {
        byChannel.set(channel, new Set([own]));
        turns?.first(channel);
      }
      return () => leave(channel, own);
    },
    tell(channel, message) {
      for (const listener of byChannel.get(channel) ?? []) listener(message);
    },
    channels: () => [...byChannel.keys()],
  };
}
