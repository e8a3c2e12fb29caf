/** Receives the messages of all instances on a connection of its own, which is re-established when it breaks. */

import type { PubSub } from './ports.ts';
import { createSubscriptions } from './subscriptions.ts';

/** How often the connection is pinged: an idle one would not notice a frozen server. Milliseconds. */
const pingEveryMs = 500;

/** A connection in subscriber mode that does not reconnect by itself. */
export interface SubscriberConnection {
  on(event: 'ready' | 'end', listener: () => void): unknown;
  on(event: 'message', listener: (channel: string, message: string) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  disconnect(): void;
}

export interface RedisSubscriber {
  readonly subscribe: PubSub['subscribe'];
  /** Replaces the connection with a new one. */
  reconnect(): void;
  close(): void;
}

/**
 * Connects at the first subscription, and again whenever the connection is lost.
 *
 * A new connection subscribes to all channels again, whichever node it leads to: in a cluster, every node delivers every
 * message.
 *
 * @param newConnection a connection to any node
 */
export function createRedisSubscriber(newConnection: () => SubscriberConnection): RedisSubscriber {
  let current: SubscriberConnection | undefined;
  let isReady = false;
  let attempt = 0;
  let isClosed = false;
  let pingTimer: NodeJS.Timeout | undefined;
  let retryTimer: NodeJS.Timeout | undefined;

  /** Sends a command; drops the connection if the server refuses it or does not answer. */
  const send = (command: (connection: SubscriberConnection) => Promise<unknown>) => {
    const connection = current;
    if (connection && isReady) command(connection).catch(() => connection.disconnect());
  };
  const subscriptions = createSubscriptions({
    onFirst: (channel) => (current ? send((connection) => connection.subscribe(channel)) : connect()),
    onLast: (channel) => send((connection) => connection.unsubscribe(channel)),
  });

  function connect() {
    if (isClosed) return;
    const connection = newConnection();
    current = connection;
    connection.on('ready', () => {
      isReady = true;
      send(async () => {
        const channels = subscriptions.channels();
        if (channels.length > 0) await connection.subscribe(...channels);
        attempt = 0; // only now, so that a server that refuses is not retried without a delay
      });
    });
    connection.on('message', (channel, message) => subscriptions.deliver(channel, message));
    connection.on('error', () => {}); // 'end' follows; redis-monitor.ts reports the problem
    connection.on('end', () => {
      isReady = false;
      if (isClosed) return;
      attempt += 1;
      retryTimer = setTimeout(connect, Math.min(50 * attempt, 500));
    });
    connection.connect().catch(() => {}); // 'end' follows
    pingTimer ??= setInterval(() => send((connection) => connection.ping()), pingEveryMs);
  }

  return {
    subscribe: (channel, listener) => subscriptions.add(channel, listener),
    reconnect: () => current?.disconnect(),
    close() {
      isClosed = true;
      clearInterval(pingTimer);
      clearTimeout(retryTimer);
      current?.disconnect();
    },
  };
}
