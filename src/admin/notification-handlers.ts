/** The handlers for subscriptions of webhooks: list and count them, send messages again, and end a subscription. */

import type { ListedSubscription, ManageSubscriptions } from '../notifications/manage-subscriptions.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorOf } from './authenticate-operator.ts';
import { isoTime, isoTimeOrNull } from './iso-time.ts';
import type { AdminApi } from './routes.ts';
import { shareRead } from './shared-read.ts';

export interface NotificationDependencies {
  readonly subscriptions: ManageSubscriptions;
  /** Calls per second that all polls of each environment may use together. */
  readonly pollLimits: () => readonly PollLimit[];
  readonly audit: AuditRecorder;
}

interface PollLimit {
  readonly environment: string;
  readonly perSecond: number;
}

type NotificationHandlers = Pick<
  AdminApi,
  | 'listNotifications'
  | 'summarizeNotifications'
  | 'showNotification'
  | 'resendNotifications'
  | 'changeNotification'
>;

export function createNotificationHandlers({
  subscriptions,
  pollLimits,
  audit,
}: NotificationDependencies): NotificationHandlers {
  /** All consoles count regularly, and there may be a thousand tenants. */
  const count = shareRead(subscriptions.count);
  const endpoints = shareRead(subscriptions.endpoints);

  return {
    listNotifications: async ({ query }) => (await subscriptions.list(query)).map(viewSubscription),

    summarizeNotifications: async () => ({
      clients: subscriptions.clients(),
      tenants: await count(),
      endpoints: (await endpoints()).map(({ lastDeliveredMs, ...figures }) => ({
        ...figures,
        lastDeliveredAt: isoTimeOrNull(lastDeliveredMs),
      })),
      pollLimits: pollLimits(),
    }),

    async showNotification({ parameters: { id } }) {
      const found = await subscriptions.find(id);
      if (!found) throw new AdminRefusal(404, 'No subscription has this id.');
      return viewSubscription(found);
    },

    async resendNotifications({ body: { tenant, reason }, response }) {
      let resent = 0;
      const record = (outcome: string, result: object) =>
        audit.record({
          who: operatorOf(response).name,
          action: 'resend dead letters',
          outcome,
          details: { tenant, reason, resent, ...result },
        });
      try {
        for await (const sent of subscriptions.resendDead(tenant)) resent += sent;
      } catch (thrown) {
        await record('failed', { why: asGatewayError(thrown).message });
        throw thrown;
      }
      await record('done', {});
      return { resent };
    },

    async changeNotification({ parameters: { id }, body: { action, reason }, response }) {
      const changed = await subscriptions[action](id);
      if (!changed) throw new AdminRefusal(404, missingText[action]);
      const { client, paymentId, url, message } = changed;
      const details = { reason, client, paymentId, url, webhookId: message?.id };
      const what = action === 'resend' ? 'resend webhook' : 'end subscription';
      await audit.record({ who: operatorOf(response).name, action: what, outcome: 'done', details });
      response.status(204).end();
    },
  };
}

const missingText = {
  resend: 'No subscription has this id, or it has no message to send.',
  end: 'No subscription has this id.',
} as const;

function viewSubscription({ since, until, status, message, ...view }: ListedSubscription) {
  return {
    ...view,
    since: isoTime(since),
    until: isoTime(until),
    transactionStatus: status?.code ?? null,
    failedReads: view.failedReads ?? 0,
    readError: view.readError ?? null,
    message: message ? viewMessage(message) : null,
  };
}

const viewMessage = ({ id, why, since, deadSince, ...view }: NonNullable<ListedSubscription['message']>) => ({
  ...view,
  webhookId: id,
  authorisationId: view.authorisationId ?? null,
  scaStatus: view.scaStatus ?? null,
  since: isoTime(since),
  why: why ?? null,
  deadSince: isoTimeOrNull(deadSince),
});
