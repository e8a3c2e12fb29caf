/** Hears the pubsub of all instances, on a connection of its own that finds its way back when it breaks. */

import type { PubSub } from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';

/** How often a silent connection is asked whether it is still there: an idle one would not notice a frozen server. */
const pingEveryMs = 500;

/** A connection that listens; it does not come back by itself. */
export interface SubscriberConnection {
  on(event: 'ready' | 'end', happened: () => void): unknown;
  on(event: 'message', heard: (channel: string, message: string) => void): unknown;
  on(event: 'error', failed: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(): void;
}

/** The ear of one instance. */
export interface RedisSubscriber {
  readonly subscribe: PubSub['subscribe'];
  /** Leaves the connection for a new one. */
  reconnect(): void;
  close(): void;
}

/**
 * Connects when somebody listens first, and again whenever the connection is lost.
 *
 * A new connection subscribes to all that is listened to, whichever node it leads to:
 * in a cluster every node passes every announcement on.
 *
 * @param newConnection a connection to a node, not necessarily the one before
 */
export function createRedisSubscriber(newConnection: () => SubscriberConnection): RedisSubscriber {
  let current: SubscriberConnection | undefined;
  let ready = false;
  let attempt = 0;
  let closed = false;
  let pingTimer: NodeJS.Timeout | undefined;
  let retryTimer: NodeJS.Timeout | undefined;

  /** Asks the server; if it refuses or stays silent, the connection is of no use. */
  const ask = (question: (connection: SubscriberConnection) => Promise<unknown>) => {
    const asked = current;
    if (asked && ready) question(asked).catch(() => asked.disconnect());
  };
  const subscriptions = createSubscriptions({
    onFirst: (channel) => (current ? ask((connection) => connection.subscribe(channel)) : connect()),
    onLast: (channel) => ask((connection) => connection.unsubscribe(channel)),
  });

  function connect() {
    if (closed) return;
    const connection = newConnection();
    current = connection;
    connection.on('ready', () => {
      ready = true;
      ask(async () => {
        const channels = subscriptions.channels();
        if (channels.length > 0) await connection.subscribe(...channels);
        attempt = 0; // not before: a server that refuses is not to be asked without a pause
      });
    });
    connection.on('message', (channel, message) => subscriptions.deliver(channel, message));
    connection.on('error', () => {}); // 'end' follows; the watch over the commands says what is wrong
    connection.on('end', () => {
      ready = false;
      if (closed) return;
      attempt += 1;
      retryTimer = setTimeout(connect, Math.min(50 * attempt, 500));
    });
    connection.connect().catch(() => {}); // likewise
    pingTimer ??= setInterval(() => ask((listening) => listening.ping()), pingEveryMs);
  }

  return {
    subscribe: (channel, listener) => subscriptions.add(channel, listener),
    reconnect: () => current?.disconnect(),
    close() {
      closed = true;
      clearInterval(pingTimer);
      clearTimeout(retryTimer);
      current?.disconnect();
    },
  };
}
