/** A process that delivers the messages of one tenant from a Redis: `node webhook-worker.ts SETTINGS`, with SETTINGS in JSON. */

import { parseWebhookSecrets } from '../../src/config/webhook-secrets.ts';
import { createDeliveries } from '../../src/notifications/deliver-messages.ts';
import { createPostWebhook } from '../../src/notifications/post-webhook.ts';
import { createSubscriptionStore } from '../../src/notifications/subscription-store.ts';
import { createRedisState } from '../../src/state/redis.ts';

export interface WorkerSettings {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly tenant: string;
  readonly secret: string;
  readonly urls: readonly string[];
  /** What the names of endpoints resolve to, in turn. */
  readonly names: Readonly<Record<string, readonly (readonly string[])[]>>;
  readonly timeoutMs: number;
}

const { redisUrl, prefix, tenant, secret, urls, names, timeoutMs }: WorkerSettings = JSON.parse(
  process.argv[2] ?? '',
);

const state = createRedisState({ kind: 'single', url: redisUrl }, prefix, () => {}, 500);
await state.open();
const { schedules } = state;
const counts = new Map<string, number>();
const deliveries = createDeliveries({
  schedules,
  store: createSubscriptionStore(schedules),
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
  settings: () => ({ retryForMs: 72 * 3_600_000, keepForMs: 30 * 24 * 3_600_000 }),
  onAttempt: () => {},
  onBug: console.error,
});
const timer = setInterval(() => void deliveries.run(), 500);
process.on('SIGTERM', async () => {
  clearInterval(timer);
  await deliveries.stop();
  await state.close();
});
process.stdout.write('ready\n');
