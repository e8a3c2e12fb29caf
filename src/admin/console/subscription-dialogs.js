/** The dialogs that send webhooks again, one or all dead letters, and that end a subscription. */

import { callApi } from './connection.js';
import { field, openFormDialog, reasonField, showNotice } from './dialogs.js';
import { byId, formatCount, h } from './dom.js';
import { environmentBadge } from './production.js';

/** All dead letters of a tenant may be thousands. */
const maxMs = 300_000;

export function openResend({ message, ...subscription }) {
  const { transactionStatus, final, scaStatus, webhookId, failedAttempts, why } = message;
  const attempts = formatCount(failedAttempts, 'failed attempt');
  return openFormDialog({
    title: 'Send webhook again',
    button: 'Send again',
    body: [
      ...describe(subscription),
      h(
        'p',
        {},
        `${transactionStatus}${final ? ', the final status' : ''}${scaStatus ? `, SCA ${scaStatus}` : ''}. ${attempts}.`,
      ),
      ...(why === null ? [] : [h('p', { class: 'hint' }, `The last one: ${why}.`)]),
      h('p', { class: 'hint' }, 'The webhook-id stays ', h('span', { class: 'id' }, webhookId), '.'),
      reasonField(),
    ],
    send: ({ reason }) => change(subscription, 'resend', reason),
    done() {
      showNotice('The webhook is due now.');
      return byId('notifications-title');
    },
  });
}

export function openEnd({ message, ...subscription }) {
  return openFormDialog({
    title: 'End subscription',
    button: 'End subscription',
    body: [
      ...describe(subscription),
      h(
        'p',
        {},
        'The TPP gets no more webhooks about this payment, unless it subscribes again. It can read the status at any time.',
        message ? ' The undelivered webhook is not sent any more.' : '',
      ),
      reasonField(),
    ],
    send: ({ reason }) => change(subscription, 'end', reason),
    done() {
      showNotice('Subscription ended.');
      return byId('notifications-title');
    },
  });
}

/** @param tenants with the number of their dead letters, `dead` */
export function openResendSeveral(tenants) {
  const withDead = tenants.filter(({ dead }) => dead > 0);
  const all = withDead.reduce((sum, { dead }) => sum + dead, 0);
  const choices = [['', 'all', all], ...withDead.map(({ tenant, dead }) => [tenant, tenant, dead])];
  return openFormDialog({
    title: 'Send dead letters again',
    button: 'Send again',
    body: [
      h(
        'p',
        {},
        'Every dead letter is due at once. While an endpoint fails, the gateway sends it one at a time.',
      ),
      field(
        'Tenant',
        h(
          'select',
          { id: 'resend-tenant', name: 'tenant' },
          ...choices.map(([value, label, dead]) =>
            h('option', { value }, `${label}: ${formatCount(dead, 'dead letter')}`),
          ),
        ),
      ),
      reasonField(),
    ],
    send: ({ tenant, reason }) =>
      callApi('POST', '/notifications', { action: 'resend', ...(tenant && { tenant }), reason }, maxMs),
    done({ resent }) {
      showNotice(`${formatCount(resent, 'webhook is', 'webhooks are')} due now.`);
      return byId('notifications-title');
    },
  });
}

const describe = ({ environment, tenant, paymentId, url }) => [
  h(
    'p',
    {},
    'Payment ',
    h('span', { class: 'id' }, paymentId),
    `, tenant ${tenant}, `,
    environmentBadge(environment),
  ),
  h('p', { class: 'hint' }, h('bdi', {}, url)),
];

const change = ({ id }, action, reason) =>
  callApi('POST', `/notifications/${encodeURIComponent(id)}`, { action, reason });
