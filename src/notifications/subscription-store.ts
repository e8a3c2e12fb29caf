/** Where subscriptions are stored: one for each tenant and payment. */

import { hash } from 'node:crypto';
import type { EncryptionKeys } from '../config/encryption-keys.ts';
import { createTextEncryption } from '../state/encryption.ts';
import type {
  DueChange,
  ListConditions,
  StoredSubscription,
  SubscriptionTable,
} from '../store/subscriptions.ts';
import type { MessageNote, MessageState } from '../store/webhook-messages.ts';
import {
  isFailing,
  type Message,
  parseSubscription,
  type Subscription,
  serializeSubscription,
} from './subscription.ts';

/** The id of a subscription. @param paymentKey the key of the payment in the cache */
export const subscriptionIdOf = (tenantId: string, paymentKey: string): string =>
  hash('sha256', `${tenantId}\n${paymentKey}`, 'base64url').slice(0, 22);

/** One origin of one tenant. */
export const endpointOf = ({ tenant, url }: Pick<Subscription, 'tenant' | 'url'>): string =>
  hash('sha256', `${tenant}\n${new URL(url).origin}`, 'base64url').slice(0, 22);

/** A subscription to write, `undefined` to remove it. */
export interface SubscriptionChange {
  readonly subscription: Subscription | undefined;
  /** When it is read; by default, as before. */
  readonly read?: DueChange | undefined;
  /** When its message is sent; by default, as before. */
  readonly delivery?: DueChange | undefined;
  /** What the change says of a message, for operators. */
  readonly message?: NotedMessage | undefined;
}

export interface NotedMessage {
  /** The receiver of the message: after an attempt, that of the attempt. */
  readonly to: Pick<Subscription, 'client' | 'url'>;
  readonly message: Message;
  readonly state: MessageState;
}

type ChangeSubscription = (current: Subscription | undefined) => SubscriptionChange | undefined;

/** What is stored, and what this instance can read of it. */
export interface KnownSubscription extends Pick<StoredSubscription, 'id' | 'revision' | 'changedAtMs'> {
  /** `undefined` if it was encrypted with another key. */
  readonly subscription: Subscription | undefined;
}

/**
 * When work is due again that this instance cannot do, because it cannot read the subscription, or the client or environment is not in its
 * settings. Soon after the last change, because another instance may have other keys or settings; then less and less often. Milliseconds.
 */
export const otherInstanceDelayMs = (
  { changedAtMs }: Pick<StoredSubscription, 'changedAtMs'>,
  nowMs: number,
): number => Math.min(longestDelayMs, Math.max(shortestDelayMs, (nowMs - changedAtMs) / 10));

const shortestDelayMs = 5_000;
const longestDelayMs = 6 * 3_600_000;

export type SubscriptionStore = ReturnType<typeof createSubscriptionStore>;

/**
 * Every function @throws DatabaseError.
 *
 * @param keys records are encrypted with the first one, each bound to its id
 */
export function createSubscriptionStore(
  table: Pick<SubscriptionTable, 'read' | 'write' | 'remove' | 'list'>,
  keys: readonly [] | EncryptionKeys = [],
) {
  const encryption = createTextEncryption(keys);
  const nameOf = (id: string) => `subscription:${id}`;

  function known({ id, revision, changedAtMs, text }: StoredSubscription): KnownSubscription {
    return {
      id,
      revision,
      changedAtMs,
      subscription: parseSubscription(encryption.decrypt(nameOf(id), text)),
    };
  }

  async function find(id: string): Promise<KnownSubscription | undefined> {
    const stored = await table.read(id);
    return stored && known(stored);
  }

  /** @returns false if another instance has changed it in the meantime */
  function write(
    id: string,
    stored: KnownSubscription | undefined,
    { subscription, message: noted, read, delivery }: SubscriptionChange,
  ): Promise<boolean> {
    if (!subscription) return remove(id, stored, noted);
    const { tenant, environment, paymentId, message } = subscription;
    const isRefused = message !== undefined && message.deadSince === undefined && message.failedAttempts > 0;
    return table.write(stored?.revision, {
      id,
      tenant,
      environment,
      paymentId,
      text: encryption.encrypt(nameOf(id), serializeSubscription(subscription)),
      isFailing: isFailing(subscription),
      deadSinceMs: message?.deadSince,
      failedEndpoint: isRefused ? endpointOf(subscription) : undefined,
      read,
      delivery,
      message: noted && noteOf(noted),
    });
  }

  async function remove(
    id: string,
    stored: KnownSubscription | undefined,
    noted: NotedMessage | undefined,
  ): Promise<boolean> {
    if (!stored) return true;
    const { revision, subscription } = stored;
    if (!subscription) return table.remove(revision, { id, tenant: '', environment: '', paymentId: '' });
    return table.remove(revision, { ...subscription, id }, noted && noteOf(noted));
  }

  async function update(
    id: string,
    change: ChangeSubscription,
    replacesUnreadable: boolean,
    first: KnownSubscription | undefined,
  ): Promise<void> {
    for (let stored = first; ; stored = await find(id)) {
      if (stored && !stored.subscription && !replacesUnreadable) return;
      const changed = change(stored?.subscription);
      if (!changed || (await write(id, stored, changed))) return;
    }
  }

  return {
    /** What of a stored subscription this instance can read. */
    known,
    async read(id: string): Promise<Subscription | undefined> {
      return (await find(id))?.subscription;
    },
    /** Without those that this instance cannot read. */
    async list(conditions: ListConditions, limit: number) {
      const stored = await table.list(conditions, limit);
      return stored
        .map(known)
        .flatMap(({ id, subscription }) => (subscription ? [{ id, subscription }] : []));
    },
    /**
     * Changes a subscription, again if another instance changes it at the same time.
     *
     * @param change receives what is stored; returns `undefined` to leave it as it is. May be called several times. It is not called for
     *   one that this instance cannot read, because another one may be able to; such a subscription does not change
     * @param first  what was read before, to save a read
     */
    async change(id: string, change: ChangeSubscription, first?: KnownSubscription): Promise<void> {
      await update(id, change, false, first ?? (await find(id)));
    },
    /**
     * As `change`, but takes a subscription that this instance cannot read for none.
     *
     * @param isNew whether there probably is none: this saves a read
     */
    async replace(id: string, change: ChangeSubscription, isNew = false): Promise<void> {
      await update(id, change, true, isNew ? undefined : await find(id));
    },
  };
}

const noteOf = ({ to: { client, url }, message, state }: NotedMessage): MessageNote => ({
  id: message.id,
  client,
  endpoint: new URL(url).origin,
  sequence: message.sequence,
  transactionStatus: message.transactionStatus,
  scaStatus: message.scaStatus,
  state,
  attempts: message.attempts,
  why: message.why,
});
