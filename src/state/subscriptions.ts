/** Who listens to which channel within this process. */

/** Listeners by channel. */
export interface Subscriptions {
  /** Lets a listener hear what is told from now on. @returns stops it; a second call does nothing */
  add(channel: string, listener: (message: string) => void): () => void;
  deliver(channel: string, message: string): void;
  /** The channels that somebody listens to. */
  channels(): readonly string[];
}

/** What to do when a channel gets its first listener, or loses its last. */
interface SubscriptionHooks {
  readonly onFirst: (channel: string) => void;
  readonly onLast: (channel: string) => void;
}

/** Nobody listens yet. */
export function createSubscriptions(hooks?: SubscriptionHooks): Subscriptions {
  const byChannel = new Map<string, Set<(message: string) => void>>();

  const unsubscribe = (channel: string, listener: (message: string) => void) => {
    const others = byChannel.get(channel);
    if (!others?.delete(listener) || others.size > 0) return;
    byChannel.delete(channel);
    hooks?.onLast(channel);
  };

  return {
    add(channel, listener) {
      const own = (message: string) => listener(message); // the same function may listen twice
      const others = byChannel.get(channel);
      others?.add(own);
      if (!others) {
        byChannel.set(channel, new Set([own]));
        hooks?.onFirst(channel);
      }
      return () => unsubscribe(channel, own);
    },
    deliver(channel, message) {
      for (const listener of byChannel.get(channel) ?? []) listener(message);
    },
    channels: () => [...byChannel.keys()],
  };
}
