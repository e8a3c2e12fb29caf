/** The handlers for subscriptions of webhooks: list them, send a message again, and end a subscription. */

import type { ListedSubscription, ManageSubscriptions } from '../notifications/manage-subscriptions.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorOf } from './authenticate-operator.ts';
import type { AdminApi } from './routes.ts';

export interface NotificationDependencies {
  readonly subscriptions: ManageSubscriptions;
  readonly audit: AuditRecorder;
}

type NotificationHandlers = Pick<AdminApi, 'listNotifications' | 'changeNotification'>;

export function createNotificationHandlers({
  subscriptions,
  audit,
}: NotificationDependencies): NotificationHandlers {
  return {
    listNotifications: async ({ query }) => (await subscriptions.list(query)).map(viewSubscription),

    async changeNotification({ parameters: { id }, body: { action, reason }, response }) {
      const changed = await subscriptions[action](id);
      if (!changed) throw new AdminRefusal(404, 'No subscription has this id, or it has no message to send.');
      const { client, paymentId, url, message } = changed;
      const details = { reason, client, paymentId, url, webhookId: message?.id };
      const what = action === 'resend' ? 'resend webhook' : 'end subscription';
      await audit.record({ who: operatorOf(response).name, action: what, outcome: 'done', details });
      response.status(204).end();
    },
  };
}

function viewSubscription({ since, until, status, message, failedReads, ...view }: ListedSubscription) {
  return {
    ...view,
    since: isoTime(since),
    until: isoTime(until),
    transactionStatus: status?.code ?? null,
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
  deadSince: deadSince === undefined ? null : isoTime(deadSince),
});

const isoTime = (atMs: number) => new Date(atMs).toISOString();
