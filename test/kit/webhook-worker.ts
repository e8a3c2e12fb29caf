/** A process that delivers the messages of one tenant from PostgreSQL: `node webhook-worker.ts SETTINGS`, with SETTINGS in JSON. */

import { parseWebhookSecrets } from '../../src/config/webhook-secrets.ts';
import { createDeliveries } from '../../src/notifications/deliver-messages.ts';
import { createPostWebhook } from '../../src/notifications/post-webhook.ts';
import { createSubscriptionStore } from '../../src/notifications/subscription-store.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { createSubscriptionTable } from '../../src/store/subscriptions.ts';

export interface WorkerSettings {
  readonly postgres: string;
  readonly tenant: string;
  readonly secret: string;
  readonly urls: readonly string[];
  /** What the names of endpoints resolve to, in turn. */
  readonly names: Readonly<Record<string, readonly (readonly string[])[]>>;
  readonly timeoutMs: number;
}

const { postgres, tenant, secret, urls, names, timeoutMs }: WorkerSettings = JSON.parse(
  process.argv[2] ?? '',
);

const database = connectPostgres(postgres);
const table = createSubscriptionTable(database);
const counts = new Map<string, number>();
const deliveries = createDeliveries({
  table,
  store: createSubscriptionStore(table),
  post: createPostWebhook({
    isAllowedPrivate: () => false,
    timeoutMs,
    async resolveName(name) {
      const count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      const answers = names[name] ?? [[]];
      return answers[count % answers.length] ?? [];
    },
  }),
  tenantIds: () => [tenant],
  clientOf: () => ({ urls, secrets: parseWebhookSecrets(secret) }),
  statusUrlOf: ({ paymentId }) => `https://gateway.example/v1/payments/x/${paymentId}/status`,
  retryForMs: () => 72 * 3_600_000,
  onAttempt: () => {},
  onBug: console.error,
});
const timer = setInterval(() => void deliveries.run(), 500);
process.on('SIGTERM', async () => {
  clearInterval(timer);
  await deliveries.stop();
  await database.close();
});
process.stdout.write('ready\n');
