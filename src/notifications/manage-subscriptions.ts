/** What operators see of subscriptions and their messages, and what they can do with them. */

import { secretMask } from '../config/redact.ts';
import type { Schedules } from '../state/former/schedules.ts';
import type { CountSubscriptions, NamedIdentity } from './count-subscriptions.ts';
import { isFailing, parseSubscription, type Subscription, withResend } from './subscription.ts';
import {
  queueNames,
  removedFromQueues,
  type SubscriptionStore,
  subscriptionKeyOf,
} from './subscription-store.ts';

/**
 * `dead`: its message was given up. `undelivered`: it has a message. `failing`: several reads of the status in a
 * row have failed. `active`: all others.
 */
export const subscriptionStates = ['active', 'failing', 'undelivered', 'dead'] as const;

export type SubscriptionState = (typeof subscriptionStates)[number];

/** Names in place of identities. Without credentials. */
export interface ListedSubscription
  extends Omit<Subscription, 'v' | 'id' | 'headers' | 'authorisations' | 'authorisedAt'> {
  readonly id: string;
  readonly state: SubscriptionState;
}

export interface SubscriptionFilter {
  readonly tenant?: string | undefined;
  readonly payment?: string | undefined;
  readonly state?: SubscriptionState | undefined;
}

/** All throw GatewayError STATE_UNAVAILABLE. */
export interface ManageSubscriptions {
  /** At most `maxListed` of each tenant and queue, and `maxListedInAll`. */
  list(filter: SubscriptionFilter): Promise<readonly ListedSubscription[]>;
  find(id: string): Promise<ListedSubscription | undefined>;
  readonly count: CountSubscriptions;
  /** The names of the clients that may have webhooks. */
  clients(): readonly string[];
  /** Makes the message of a subscription due now; a dead letter is sent again under its id. @returns undefined if there is none */
  resend(id: string): Promise<ListedSubscription | undefined>;
  /**
   * Sends the dead letters again, of one tenant or of all.
   *
   * @returns the number of those sent again, in parts: if one rejects, those before have been sent
   */
  resendDead(tenant?: string): AsyncIterable<number>;
  /** Ends a subscription; its message is not sent any more. @returns the subscription, undefined if there is none */
  end(id: string): Promise<ListedSubscription | undefined>;
}

interface ManageDependencies {
  readonly schedules: Schedules;
  readonly store: SubscriptionStore;
  readonly count: CountSubscriptions;
  readonly clients: () => readonly string[];
  /** The tenants and environments of the configuration, by name, with their identities. */
  readonly tenants: () => readonly NamedIdentity[];
  readonly environments: () => readonly NamedIdentity[];
  readonly paymentKeyOf: (environmentId: string, paymentId: string) => string;
}

const maxListed = 200;
const maxListedInAll = 1_000;

/** TPPs may have put a token into the query. */
const withMaskedQuery = (url: string) => url.replace(/\?.*/, `?${secretMask}`);

export function createManageSubscriptions({
  schedules,
  store,
  count,
  clients,
  tenants,
  environments,
  paymentKeyOf,
}: ManageDependencies): ManageSubscriptions {
  const nameOf = (named: readonly NamedIdentity[], id: string) =>
    named.find((one) => one.id === id)?.name ?? id;

  function view(key: string, subscription: Subscription): ListedSubscription {
    const { v, id, headers, authorisations, authorisedAt, ...shown } = subscription;
    return {
      ...shown,
      id: idOf(key),
      tenant: nameOf(tenants(), shown.tenant),
      environment: nameOf(environments(), shown.environment),
      url: withMaskedQuery(shown.url),
      state: stateOf(subscription),
    };
  }

  async function inQueues(
    wanted: readonly NamedIdentity[],
    state: SubscriptionState | undefined,
  ): Promise<Map<string, ListedSubscription>> {
    const queues = wanted.flatMap(({ id: tenant }) => [
      ...(state === undefined || state === 'dead' ? [queueNames.dead(tenant)] : []),
      ...(state === undefined || state === 'undelivered' ? [queueNames.delivery(tenant)] : []),
      ...(state === 'failing' ? [queueNames.failing(tenant)] : []),
      ...(state === 'dead' || state === 'undelivered' || state === 'failing'
        ? []
        : environments().map(({ id: environment }) => queueNames.poll({ tenant, environment }))),
    ]);
    const listed = (await Promise.all(queues.map((queue) => schedules.list(queue, maxListed)))).flat();
    return new Map(
      listed.flatMap(({ key, record }) => {
        const subscription = parseSubscription(record.text);
        return subscription ? [[key, view(key, subscription)] as const] : [];
      }),
    );
  }

  async function ofPayment(
    wanted: readonly NamedIdentity[],
    payment: string,
  ): Promise<Map<string, ListedSubscription>> {
    const keys = wanted.flatMap(({ id }) =>
      environments().map((environment) => subscriptionKeyOf(id, paymentKeyOf(environment.id, payment))),
    );
    const found = new Map<string, ListedSubscription>();
    for (const key of keys) {
      const subscription = await store.read(key);
      if (subscription) found.set(key, view(key, subscription));
    }
    return found;
  }

  const tenantsNamed = (name: string | undefined) =>
    tenants().filter((tenant) => name === undefined || tenant.name === name);

  /** @param isWanted which subscriptions with a message */
  async function resend(
    key: string,
    isWanted: (current: Subscription) => boolean = () => true,
  ): Promise<Subscription | undefined> {
    let resent: Subscription | undefined;
    await store.change(key, (current) => {
      resent = current?.message && isWanted(current) ? withResend(current, Date.now()) : undefined;
      if (!resent) return undefined;
      const due = [
        { queue: queueNames.delivery(resent.tenant), inMs: 0 },
        { queue: queueNames.dead(resent.tenant), inMs: undefined },
      ];
      return { subscription: resent, due };
    });
    return resent;
  }

  /** @returns how many were sent again */
  async function resendSome(queue: string): Promise<number> {
    const listed = await schedules.list(queue, maxListed);
    const resent = await Promise.all(listed.map(({ key }) => resend(key, isDead)));
    return resent.filter((one) => one !== undefined).length;
  }

  return {
    async list({ tenant, payment, state }) {
      const wanted = tenantsNamed(tenant);
      const found = payment === undefined ? await inQueues(wanted, state) : await ofPayment(wanted, payment);
      const listed = [...found.values()].filter((one) => state === undefined || one.state === state);
      return listed.slice(0, maxListedInAll);
    },
    async find(id) {
      const key = keyOf(id);
      const subscription = await store.read(key);
      return subscription && view(key, subscription);
    },
    count,
    clients,
    async resend(id) {
      const key = keyOf(id);
      const resent = await resend(key);
      return resent && view(key, resent);
    },
    async *resendDead(tenant) {
      for (const { id } of tenantsNamed(tenant)) {
        const queue = queueNames.dead(id);
        for (let sent = await resendSome(queue); sent > 0; sent = await resendSome(queue)) yield sent;
      }
    },
    async end(id) {
      const key = keyOf(id);
      let ended: Subscription | undefined;
      await store.change(key, (current) => {
        ended = current;
        return current && { subscription: undefined, due: removedFromQueues(current) };
      });
      return ended && view(key, ended);
    },
  };
}

/** The id that operators see: a key may begin with `-`, as an option of a command does. */
const idOf = (key: string) => `sub-${key}`;
const keyOf = (id: string) => id.replace(/^sub-/, '');

const isDead = (subscription: Subscription) => stateOf(subscription) === 'dead';

function stateOf(subscription: Subscription): SubscriptionState {
  const { message } = subscription;
  if (message) return message.deadSince === undefined ? 'undelivered' : 'dead';
  return isFailing(subscription) ? 'failing' : 'active';
}
