/** What the webhooks use of one configuration. */

import { readFileSync } from 'node:fs';
import type { ClientSettings, Config } from '../config/schema.ts';
import { parseWebhookSecrets, type WebhookSecrets } from '../config/webhook-secrets.ts';
import { createMatcher, idToSegment, type Operation, prefixOf } from '../pis/operations.ts';
import type { Identities } from '../request/identities.ts';
import type { Authorisation } from './authorisations.ts';
import type { ScheduleSettings } from './poll-schedule.ts';
import { createPostWebhook, type PostWebhook } from './post-webhook.ts';
import { createIsAllowedPrivate } from './resolve-endpoint.ts';
import type { Subscription } from './subscription.ts';

/** A client that may have webhooks. */
export interface WebhookClient extends Pick<ClientSettings, 'name' | 'tenant' | 'environments'> {
  readonly urls: readonly string[];
  readonly secrets: WebhookSecrets;
}

export interface WebhookConfig {
  /** By name. */
  readonly clients: ReadonlyMap<string, WebhookClient>;
  /** All configured ones, also those without webhooks. */
  readonly tenants: readonly string[];
  /** `undefined` until the identities are known. */
  readonly identities: () => Identities | undefined;
  readonly post: PostWebhook;
  readonly schedule: ScheduleSettings;
  readonly retryForMs: number;
  readonly keepForMs: number;
  readonly maxSubscriptions: number;
  /** The public URL of the status of a payment. */
  readonly statusUrlOf: (subscription: PaymentPath) => string;
  /** The read of the status; `undefined` if the configuration does not accept its path. */
  readonly statusReadOf: (subscription: PaymentPath) => Operation | undefined;
  /** The read of an authorisation, or of the list if it has no id; `undefined` as above. */
  readonly authorisationReadOf: (
    subscription: PaymentPath,
    authorisation: Pick<Authorisation, 'type' | 'id'>,
  ) => Operation | undefined;
}

type PaymentPath = Pick<Subscription, 'paymentService' | 'paymentProduct' | 'paymentId'>;

/** @throws Error that says what to change, if a file of secrets cannot be used */
export function createWebhookConfig(config: Config, identities: WebhookConfig['identities']): WebhookConfig {
  const { clients, standard, listen, notifications, statusCache } = config;
  const match = createMatcher(standard);
  const paymentPathOf = ({ paymentService, paymentProduct, paymentId }: PaymentPath) =>
    `${prefixOf(standard.segment)}/${paymentService}/${paymentProduct}/${idToSegment(paymentId)}`;
  const statusPathOf = (payment: PaymentPath) => `${paymentPathOf(payment)}/status`;
  function readOf(path: string): Operation | undefined {
    const matched = match('GET', path);
    return matched.kind === 'operation' ? matched.operation : undefined;
  }
  return {
    clients: new Map(
      clients.flatMap((client) => webhookClient(client) ?? []).map((each) => [each.name, each]),
    ),
    tenants: [...new Set(clients.map(({ tenant }) => tenant))],
    identities,
    post: createPostWebhook({
      isAllowedPrivate: createIsAllowedPrivate(notifications.allowPrivate),
      timeoutMs: notifications.timeout,
    }),
    schedule: { ...statusCache, ...notifications },
    retryForMs: notifications.retryFor,
    keepForMs: notifications.keepFor,
    maxSubscriptions: notifications.maxSubscriptions,
    statusUrlOf: (subscription) => listen.publicUrl + statusPathOf(subscription),
    statusReadOf: (subscription) => readOf(statusPathOf(subscription)),
    authorisationReadOf(subscription, { type, id }) {
      const list = `${paymentPathOf(subscription)}/${type}`;
      return readOf(id === undefined ? list : `${list}/${idToSegment(id)}`);
    },
  };
}

function webhookClient({
  name,
  tenant,
  environments,
  notifications,
}: ClientSettings): WebhookClient | undefined {
  if (!notifications) return undefined;
  const { urls, secretFile } = notifications;
  try {
    return {
      name,
      tenant,
      environments,
      urls,
      secrets: parseWebhookSecrets(readFileSync(secretFile, 'utf8')),
    };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`clients: ${name}: notifications.secretFile: ${secretFile}: ${why}`, { cause });
  }
}
