/** What operators see of subscriptions and their messages, and what they can do with them. */

import { secretMask } from '../config/redact.ts';
import type { SubscriptionState } from '../store/subscriptions.ts';
import type { EndpointFigures, WebhookMessageTable } from '../store/webhook-messages.ts';
import type { CountSubscriptions, NamedIdentity } from './count-subscriptions.ts';
import { isFailing, type Subscription, withResend } from './subscription.ts';
import type { SubscriptionStore } from './subscription-store.ts';

/** In the order in which they are listed. */
export const subscriptionStates = [
  'dead',
  'undelivered',
  'failing',
  'active',
] as const satisfies readonly SubscriptionState[];

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

/** All throw DatabaseError. */
export interface ManageSubscriptions {
  /** At most a thousand. */
  list(filter: SubscriptionFilter): Promise<readonly ListedSubscription[]>;
  find(id: string): Promise<ListedSubscription | undefined>;
  readonly count: CountSubscriptions;
  /** With the names of the tenants. */
  endpoints(): Promise<readonly EndpointFigures[]>;
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
  readonly store: SubscriptionStore;
  readonly messages: Pick<WebhookMessageTable, 'figures'>;
  readonly count: CountSubscriptions;
  readonly clients: () => readonly string[];
  /** The tenants and environments of the configuration, by name, with their identities. */
  readonly tenants: () => readonly NamedIdentity[];
  readonly environments: () => readonly NamedIdentity[];
}

const maxListed = 1_000;
/** Dead letters that are sent again in one part. */
const resentAtOnce = 200;

/** TPPs may have put a token into the query. */
const withMaskedQuery = (url: string) => url.replace(/\?.*/, `?${secretMask}`);

export function createManageSubscriptions({
  store,
  messages,
  count,
  clients,
  tenants,
  environments,
}: ManageDependencies): ManageSubscriptions {
  const nameOf = (named: readonly NamedIdentity[], id: string) =>
    named.find((one) => one.id === id)?.name ?? id;

  function view(id: string, subscription: Subscription): ListedSubscription {
    const { v, id: _, headers, authorisations, authorisedAt, ...shown } = subscription;
    return {
      ...shown,
      id: shownIdOf(id),
      tenant: nameOf(tenants(), shown.tenant),
      environment: nameOf(environments(), shown.environment),
      url: withMaskedQuery(shown.url),
      state: stateOf(subscription),
    };
  }

  const idsOfTenants = (name: string | undefined) =>
    tenants()
      .filter((tenant) => name === undefined || tenant.name === name)
      .map(({ id }) => id);

  /** @param isWanted which subscriptions with a message */
  async function resend(
    id: string,
    isWanted: (current: Subscription) => boolean = () => true,
  ): Promise<Subscription | undefined> {
    let resent: Subscription | undefined;
    await store.change(id, (current) => {
      resent = current?.message && isWanted(current) ? withResend(current, Date.now()) : undefined;
      const message = resent?.message;
      if (!resent || !message) return undefined;
      return {
        subscription: resent,
        delivery: { inMs: 0 },
        message: { to: resent, message, state: 'undelivered' },
      };
    });
    return resent;
  }

  /** @returns how many were sent again */
  async function resendSome(tenantIds: readonly string[]): Promise<number> {
    const listed = await store.list({ tenants: tenantIds, state: 'dead' }, resentAtOnce);
    const resent = await Promise.all(listed.map(({ id }) => resend(id, isDead)));
    return resent.filter((one) => one !== undefined).length;
  }

  return {
    async list({ tenant, payment, state }) {
      const found: ListedSubscription[] = [];
      for (const each of state === undefined ? subscriptionStates : [state]) {
        const conditions = { tenants: idsOfTenants(tenant), paymentId: payment, state: each };
        const listed = await store.list(conditions, maxListed - found.length);
        found.push(...listed.map(({ id, subscription }) => view(id, subscription)));
      }
      return found;
    },
    async find(shownId) {
      const id = idOf(shownId);
      const subscription = await store.read(id);
      return subscription && view(id, subscription);
    },
    count,
    async endpoints() {
      const figures = await messages.figures();
      return figures.map((each) => ({ ...each, tenant: nameOf(tenants(), each.tenant) }));
    },
    clients,
    async resend(shownId) {
      const id = idOf(shownId);
      const resent = await resend(id);
      return resent && view(id, resent);
    },
    async *resendDead(tenant) {
      const ids = idsOfTenants(tenant);
      for (let sent = await resendSome(ids); sent > 0; sent = await resendSome(ids)) yield sent;
    },
    async end(shownId) {
      const id = idOf(shownId);
      let ended: Subscription | undefined;
      await store.change(id, (current) => {
        ended = current;
        const message = current?.message;
        return (
          current && {
            subscription: undefined,
            message: message && { to: current, message, state: 'ended' },
          }
        );
      });
      return ended && view(id, ended);
    },
  };
}

/** The id that operators see: one may begin with `-`, as an option of a command does. */
const shownIdOf = (id: string) => `sub-${id}`;
const idOf = (shownId: string) => shownId.replace(/^sub-/, '');

const isDead = (subscription: Subscription) => stateOf(subscription) === 'dead';

function stateOf(subscription: Subscription): SubscriptionState {
  const { message } = subscription;
  if (message) return message.deadSince === undefined ? 'undelivered' : 'dead';
  return isFailing(subscription) ? 'failing' : 'active';
}
