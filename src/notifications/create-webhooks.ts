/** The parts of webhooks that outlive a reload of the configuration. */

import type { EncryptionKeys } from '../config/encryption-keys.ts';
import type { PaymentOfTenant, StatusEvents } from '../request/statuses.ts';
import { deleteInBatches } from '../store/delete-in-batches.ts';
import type { SubscriptionTable } from '../store/subscriptions.ts';
import type { WebhookMessageTable } from '../store/webhook-messages.ts';
import { type Log, safeStack } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  createCountSubscriptions,
  createSubscriptionGauges,
  type NamedIdentity,
  type SubscriptionCounts,
} from './count-subscriptions.ts';
import { createDeliveries } from './deliver-messages.ts';
import { createManageSubscriptions, type ManageSubscriptions } from './manage-subscriptions.ts';
import type { PollBudget } from './poll-budget.ts';
import type { PaymentPolls } from './poll-payment.ts';
import { createSubscriptionPolls } from './poll-subscriptions.ts';
import { createSubscriptionReader, type ReadableSubscription } from './read-subscription.ts';
import type { ResourceReads, StatusReads } from './status-reads.ts';
import { isFailing, isOver, type Subscription } from './subscription.ts';
import { createSubscriptionLimit, type SubscriptionLimit } from './subscription-limit.ts';
import { subscriptionIntervalMs } from './subscription-schedule.ts';
import { createSubscriptionStore, type SubscriptionStore, subscriptionIdOf } from './subscription-store.ts';
import type { WebhookClient, WebhookConfig } from './webhook-config.ts';

export interface Webhooks {
  /** Written by the request handlers, at the start and at a reload. */
  current: WebhookConfig | undefined;
  readonly store: SubscriptionStore;
  readonly manage: ManageSubscriptions;
  readonly limit: SubscriptionLimit;
  /** How many subscriptions each tenant had a moment ago. */
  counts(): readonly SubscriptionCounts[];
  /** The bank has sent a notification of a payment: its subscription is due. @throws DatabaseError */
  onBankNotification(payment: PaymentOfTenant): Promise<void>;
  /** Starts the work that is due. To be called every second. */
  run(): void;
  /** Deletes the subscriptions whose message has been dead for `notifications.keepFor`, and messages of that age. @throws DatabaseError */
  deleteExpired(): Promise<void>;
  /** Ends the work in progress; other instances continue it at once. */
  stop(): Promise<void>;
}

interface WebhooksDependencies {
  readonly table: SubscriptionTable;
  readonly messages: Pick<WebhookMessageTable, 'figures' | 'deleteOld'>;
  /** What subscriptions contain is encrypted with the first one. */
  readonly keys: readonly [] | EncryptionKeys;
  readonly paymentPolls: PaymentPolls;
  readonly events: Pick<StatusEvents, 'subscribe'>;
  readonly reads: Pick<StatusReads, 'current'> & ResourceReads;
  readonly budget: PollBudget;
  /** The key of a payment in the cache. */
  readonly paymentKeyOf: (environmentId: string, paymentId: string) => string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The clock of the status cache. */
  readonly now: () => number;
}

/** How often the queues of former settings are searched, and all queues while no client may have webhooks. Runs. */
const runsPerSearchOfFormer = 60;

/** How often the subscriptions are counted. Runs. */
const runsPerCount = 10;

export function createWebhooks({
  table,
  messages,
  keys,
  paymentPolls,
  events,
  reads,
  budget,
  paymentKeyOf,
  log,
  metrics,
  now,
}: WebhooksDependencies): Webhooks {
  const store = createSubscriptionStore(table, keys);
  const onBug = (thrown: unknown) =>
    log('error', 'the work on a webhook failed', { stack: safeStack(thrown) });
  let runs = 0;
  let searchesFormer = false;

  /** All tenants, also without webhooks: their subscriptions of former settings end as well. */
  function tenants(): readonly NamedIdentity[] {
    const identities = webhooks.current?.identities();
    if (!identities) return [];
    const names = webhooks.current?.tenants ?? [];
    return names.map((name) => ({ name, id: identities.tenantIdOf(name) }));
  }

  /** Also those that are not configured any more. */
  function allTenants(): readonly NamedIdentity[] {
    const identities = webhooks.current?.identities();
    return (identities?.tenantIds ?? []).map((id) => ({ id, name: identities?.tenantNameOf(id) ?? id }));
  }

  function allEnvironments(): readonly NamedIdentity[] {
    const identities = webhooks.current?.identities();
    const ids = identities?.environmentIds ?? [];
    return ids.map((id) => ({ id, name: identities?.environmentNameOf(id) ?? id }));
  }

  const isConfigured = ({ id }: NamedIdentity) =>
    webhooks.current?.identities()?.environmentWith(id) !== undefined;

  /** Those whose queues this run searches. */
  const searchedTenantIds = () => (searchesFormer ? allTenants() : tenants()).map(({ id }) => id);
  const searchedEnvironments = () => allEnvironments().filter((each) => searchesFormer || isConfigured(each));

  function clientOf({ client, tenant }: Pick<Subscription, 'client' | 'tenant'>): WebhookClient | undefined {
    const found = webhooks.current?.clients.get(client);
    const isOwner = found && webhooks.current?.identities()?.tenantIdOf(found.tenant) === tenant;
    return isOwner ? found : undefined;
  }

  function hasWebhooks(tenantId: string): boolean {
    const identities = webhooks.current?.identities();
    const clients = [...(webhooks.current?.clients.values() ?? [])];
    return clients.some(({ tenant }) => identities?.tenantIdOf(tenant) === tenantId);
  }

  const environmentNameOf = ({ environment }: Subscription) =>
    webhooks.current?.identities()?.environmentWith(environment);

  function readableOf(subscription: Subscription): ReadableSubscription | undefined {
    const client = clientOf(subscription);
    const operation = webhooks.current?.statusReadOf(subscription);
    const environment = environmentNameOf(subscription);
    if (!client || !operation || environment === undefined) return undefined;
    const { tenant: tenantId, environment: environmentId, paymentId } = subscription;
    const payment = { tenantId, paymentKey: paymentKeyOf(environmentId, paymentId) };
    return { client, operation, environment, payment };
  }

  function intervalMs(subscription: Subscription, atMs: number): number | undefined {
    const schedule = webhooks.current?.schedule;
    return schedule ? subscriptionIntervalMs(schedule, subscription, atMs) : retryWithoutConfigMs;
  }

  const deliveries = createDeliveries({
    table,
    store,
    post: async (...message) =>
      (await webhooks.current?.post(...message)) ?? { kind: 'failed', why: 'no configuration' },
    tenantIds: searchedTenantIds,
    clientOf,
    statusUrlOf: (subscription) => webhooks.current?.statusUrlOf(subscription) ?? '',
    retryForMs: () => webhooks.current?.retryForMs ?? 0,
    onBug,
    onAttempt({ client }, { id, failedAttempts }, result) {
      metrics.increment('penstock_webhook_attempts_total', { client, result: result.kind });
      if (result.kind !== 'failed') return;
      const { why } = result;
      log(failedAttempts === 0 ? 'warn' : 'debug', 'a webhook was not delivered', {
        client,
        webhookId: id,
        why,
      });
    },
  });

  const polls = createSubscriptionPolls({
    table,
    store,
    queues: () =>
      searchedTenantIds().flatMap((tenant) =>
        searchedEnvironments().map(({ id: environment }) => ({ tenant, environment })),
      ),
    isAllowed: (subscription) =>
      clientOf(subscription) !== undefined && environmentNameOf(subscription) !== undefined,
    reader: createSubscriptionReader({
      polls: paymentPolls,
      reads,
      budget,
      readableOf,
      authorisationReadOf: (...authorisation) => webhooks.current?.authorisationReadOf(...authorisation),
      intervalMs,
      now,
    }),
    intervalMs,
    maxIntervalMs: () => webhooks.current?.schedule.maxInterval ?? 0,
    onMessage: (tenant) => void deliveries.run({ tenant }),
    onFailing(subscription) {
      const { client, paymentProduct, failedReads, readError } = subscription;
      const environment = environmentNameOf(subscription);
      const fields = { client, environment, paymentProduct };
      if (isFailing(subscription))
        log('warn', 'the status of a subscribed payment cannot be read: its webhooks are not sent', {
          ...fields,
          failedReads,
          why: readError,
        });
      else log('info', 'the status of a subscribed payment can be read again', fields);
    },
    onBug,
  });

  /** The status of a payment has, or may have, changed: its subscription is due. @param inMs when, unless it is at once */
  async function makeDue(
    { tenantId, paymentKey }: PaymentOfTenant,
    inMs: (subscription: Subscription) => number = () => 0,
  ): Promise<void> {
    if (!hasWebhooks(tenantId)) return;
    const id = subscriptionIdOf(tenantId, paymentKey);
    const subscription = await store.read(id);
    if (!subscription || isOver(subscription)) return;
    await table.reschedule('read', id, { inMs: inMs(subscription) });
    const { tenant, environment } = subscription;
    void polls.run({ tenant, environment });
  }
  events.subscribe((event) => {
    if (event.what === 'pushed') return; // `onBankNotification` was called before
    makeDue(event, event.what === 'changed' ? afterChangeMs : undefined).catch(() => {}); // the next poll sees it
  });

  const count = createCountSubscriptions({ table, tenants });
  const gauges = createSubscriptionGauges(count, metrics);

  const webhooks: Webhooks = {
    current: undefined,
    store,
    onBankNotification: makeDue,
    limit: createSubscriptionLimit({
      countOf: table.countOf,
      max: () => webhooks.current?.maxSubscriptions ?? 0,
      now,
    }),
    counts: gauges.counts,
    manage: createManageSubscriptions({
      store,
      messages,
      count,
      clients: () => [...(webhooks.current?.clients.keys() ?? [])],
      tenants: allTenants,
      environments: allEnvironments,
    }),
    run() {
      const isCountDue = runs % runsPerCount === 0;
      searchesFormer = runs % runsPerSearchOfFormer === 0;
      const isDue = Boolean(webhooks.current?.clients.size) || searchesFormer;
      runs += 1;
      if (!isDue) return;
      if (isCountDue) void gauges.refresh();
      void deliveries.run();
      void polls.run();
    },
    async deleteExpired() {
      const keepForMs = webhooks.current?.keepForMs;
      if (keepForMs === undefined) return;
      await deleteInBatches(async (limit) => ({ rows: await table.deleteDead(keepForMs, limit), newest: 0 }));
      await deleteInBatches(async (limit) => ({
        rows: await messages.deleteOld(keepForMs, limit),
        newest: 0,
      }));
    },
    async stop() {
      await Promise.all([deliveries.stop(), polls.stop()]);
    },
  };
  return webhooks;
}

/**
 * When a change makes a subscription due. The reads of subscriptions publish changes themselves, and a bank whose servers contradict each
 * other would cause a read after each read. Not 0, so that it is not noted under a lease: that read sees the change, because the cache
 * repeats a read that a change has overtaken. Milliseconds.
 */
const afterChangeMs = ({ status }: Subscription): number =>
  Math.max(1, (status?.since ?? 0) + minAfterChangeMs - Date.now());

/** Milliseconds. */
const retryWithoutConfigMs = 1_000;
const minAfterChangeMs = 1_000;
