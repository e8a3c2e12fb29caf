/** The subscribers of each pub/sub channel within this process. */

export interface Subscriptions {
  /** Subscribes from now on. @returns unsubscribes; a second call does nothing */
  add(channel: string, listener: (message: string) => void): () => void;
  deliver(channel: string, message: string): void;
  /** The channels that have at least one subscriber. */
  channels(): readonly string[];
}

/** Called when a channel gets its first subscriber, and when it loses its last one. */
interface SubscriptionHooks {
  readonly onFirst: (channel: string) => void;
  readonly onLast: (channel: string) => void;
}

export function createSubscriptions(hooks?: SubscriptionHooks): Subscriptions {
  const byChannel = new Map<string, Set<(message: string) => void>>();

  const unsubscribe = (channel: string, listener: (message: string) => void) => {
    const listeners = byChannel.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    byChannel.delete(channel);
    hooks?.onLast(channel);
  };

  return {
    add(channel, listener) {
      const own = (message: string) => listener(message); // the same function may subscribe twice
      const listeners = byChannel.get(channel);
      listeners?.add(own);
      if (!listeners) {
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
