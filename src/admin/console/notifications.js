/** Notifications of payment statuses: reads that wait, streams, polls, and the subscriptions of webhooks with their dead letters. */

import { callApi } from './connection.js';
import { guides } from './docs-links.js';
import { byId, formatAge, formatCount, formatNumber, h, keyedList, setText, timeElement } from './dom.js';
import { newTabLink } from './external-links.js';
import { filledFields } from './filled-fields.js';
import { setChoices } from './in-doubt-filter.js';
import { createPanel } from './panel.js';
import { environmentBadge } from './production.js';
import { openEnd, openResend, openResendSeveral } from './subscription-dialogs.js';

/** More are shown on demand: an endpoint that fails for days can leave hundreds. */
const pageSize = 50;

/** As many of each tenant and state as the API lists. */
const maxListed = 200;

/** Of each state: the badge, its symbol and label, and what the subscriptions in this state are called. */
const states = {
  dead: { badge: 'open', symbol: '■', label: 'dead letter', one: 'dead letter' },
  undelivered: { badge: 'half-open', symbol: '▲', label: 'undelivered', one: 'undelivered webhook' },
  failing: { badge: 'half-open', symbol: '▲', label: 'failing', one: 'failing subscription' },
  active: { badge: 'closed', symbol: '●', label: 'active', one: 'active subscription' },
};

/** @returns `panel`, and `renderFigures(state)`, of all instances */
export function createNotifications() {
  let summary;
  let subscriptions = [];
  let polls = 0;
  let maxShown = pageSize;
  const form = byId('subscription-filter');
  const renderRows = keyedList(byId('subscription-rows'), keyOf, createRow);
  const renderFigure = createFigures();
  const panel = createPanel({
    section: 'notifications',
    name: 'The list of webhooks',
    everyMs: 15_000,
    read: () => Promise.all([callApi('GET', '/notifications/summary'), readSubscriptions()]),
    render([counts, listed]) {
      summary = counts;
      subscriptions = listed;
      setChoices(
        form.elements.tenant,
        summary.tenants.map(({ tenant }) => tenant),
      );
      renderPolls();
      renderFigure('subscriptions', totalOf('active'));
      renderFigure('undelivered', totalOf('undelivered'));
      renderFigure('dead', totalOf('dead'));
      renderList();
    },
  });

  byId('webhooks-guide').append(newTabLink('How webhooks work', guides.webhooks));
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', () => {
    maxShown = pageSize;
    panel.refresh();
  });
  byId('resend-several').addEventListener('click', () => openResendSeveral(summary.tenants));
  byId('more-subscriptions').addEventListener('click', () => {
    maxShown += pageSize;
    renderList();
  });

  /** All states of a payment: there is at most one subscription for each tenant. */
  function readSubscriptions() {
    const { payment, ...rest } = filledFields(form.elements);
    const { state, ...withoutState } = rest;
    const query = payment ? { ...withoutState, payment } : rest;
    return callApi('GET', `/notifications?${new URLSearchParams(query)}`);
  }

  function renderPolls() {
    const limit = summary?.pollLimits.reduce((total, { perSecond }) => total + perSecond, 0);
    renderFigure('polls', polls, limit && ` of at most ${formatNumber(limit)}`);
  }

  const totalOf = (name) => summary.tenants.reduce((sum, tenant) => sum + tenant[name], 0);

  function renderList() {
    const total = ['active', 'undelivered', 'dead'].reduce((sum, name) => sum + totalOf(name), 0);
    const isOff = summary.clients.length === 0 && total === 0;
    byId('webhooks-off').hidden = !isOff;
    byId('subscriptions').hidden = isOff;
    const shown = subscriptions.slice(0, maxShown);
    renderRows(shown);
    setText(byId('subscription-summary'), summarize(subscriptions, form.elements, summary));
    byId('subscription-table').hidden = shown.length === 0;
    const hidden = subscriptions.length - shown.length;
    byId('more-subscriptions').hidden = hidden === 0;
    setText(byId('more-subscriptions'), `Show ${Math.min(hidden, pageSize)} more of ${hidden}`);
    byId('resend-several').hidden = totalOf('dead') === 0;
    byId('subscription-actions').hidden = hidden === 0 && totalOf('dead') === 0;
  }

  return {
    panel,
    renderFigures({ instances, fleet }) {
      const figures = instances.flatMap(({ status, figures: one }) => (status === 'up' && one ? [one] : []));
      const sum = (name) => figures.reduce((total, one) => total + (one[name] ?? 0), 0);
      polls = sum('pollsPerSecond');
      renderPolls();
      renderFigure('waits', sum('waits'));
      renderFigure('streams', sum('streams'));
      renderFigure('overdue', sum('overduePolls'));
      byId('notification-figures').title = fleet.why ?? '';
    },
  };
}

const figureTexts = {
  waits: 'Waiting reads',
  streams: 'Streams',
  polls: 'Polls/s',
  overdue: 'Polls overdue',
  subscriptions: 'Active subscriptions',
  undelivered: 'Undelivered',
  dead: 'Dead letters',
};

/** @returns sets the value of a figure, with a remark */
function createFigures() {
  const figures = Object.entries(figureTexts).map(([name, label]) => {
    const value = h('span', {}, '–');
    const remark = h('span', { class: 'hint' });
    const element = h('div', {}, h('dt', {}, label), h('dd', {}, value, remark));
    return [name, { element, value, remark }];
  });
  byId('notification-figures').replaceChildren(...figures.map(([, { element }]) => element));
  const byName = new Map(figures);
  return (name, number, text = '') => {
    const { element, value, remark } = byName.get(name);
    element.dataset.level = name === 'dead' && number > 0 ? 'bad' : 'note';
    setText(value, formatNumber(number));
    setText(remark, text || '');
  };
}

/** What the list shows, and how many there are that it does not show. */
function summarize(subscriptions, { state, tenant, payment }, { tenants }) {
  if (payment.value.trim() !== '')
    return subscriptions.length === 0
      ? 'No subscription of this payment.'
      : `${formatCount(subscriptions.length, 'subscription')} of this payment.`;
  const { one } = states[state.value];
  if (subscriptions.length === 0) return `No ${one}s.`;
  const wanted = tenants.filter((each) => tenant.value === '' || each.tenant === tenant.value);
  const all = wanted.reduce((sum, each) => sum + each[state.value], 0);
  const isPart =
    all > subscriptions.length && (state.value !== 'active' || subscriptions.length >= maxListed);
  return isPart
    ? `${formatCount(all, one)}; the list shows ${subscriptions.length}.`
    : `${formatCount(subscriptions.length, one)}.`;
}

/** Another row for another message: the dialogs show it. */
const keyOf = ({ id, state, message }) => `${id} ${state} ${message?.webhookId}`;

function createRow(subscription) {
  const { state, tenant, client, environment, paymentId, url, content } = subscription;
  const { badge, symbol, label } = states[state];
  const details = h('span', { class: 'hint' });
  const status = h('span', { class: 'hint' });
  const cell = (name, ...parts) => h('td', { 'data-label': name }, ...parts);
  const action = (text, name, open) =>
    h(
      'button',
      {
        type: 'button',
        class: 'small',
        'data-operate': true,
        'aria-label': `${name} ${paymentId}`,
        click: () => open(subscription),
      },
      text,
    );
  const since = subscription.message?.since ?? subscription.since;
  const age = h('span');
  return {
    element: h(
      'tr',
      {},
      cell(
        'State',
        h(
          'span',
          { class: 'badge', 'data-state': badge },
          h('span', { 'aria-hidden': 'true' }, symbol),
          ' ',
          label,
        ),
      ),
      cell('Payment', h('span', {}, h('span', { class: 'id' }, paymentId), status)),
      cell('Environment', environmentBadge(environment)),
      cell('Client', client === tenant ? client : `${client} (${tenant})`),
      h('td', { class: 'wide', 'data-label': 'Endpoint' }, h('span', {}, h('bdi', {}, url), details)),
      cell('Age', h('span', {}, age, h('span', { class: 'hint' }, ' since ', timeElement(since)))),
      h(
        'td',
        { class: 'actions' },
        ...(subscription.message ? [action('Resend…', 'Resend the webhook of', openResend), ' '] : []),
        action('End…', 'End the subscription of', openEnd),
      ),
    ),
    update(latest) {
      const { transactionStatus, message } = latest;
      setText(age, formatAge(Date.now() - Date.parse(since)));
      setText(status, ` ${message ? describeStatus(message) : (transactionStatus ?? 'not read yet')}`);
      setText(details, ` ${content}${explain(latest)}`);
    },
  };
}

const describeStatus = ({ transactionStatus, final, scaStatus, sequence }) =>
  `${transactionStatus}${final ? ', final' : ''}${scaStatus ? `, SCA ${scaStatus}` : ''}, message ${sequence}`;

function explain({ state, message, failedReads, readError }) {
  if (state === 'failing')
    return `: ${formatCount(failedReads, 'failed read')} of the status, the last because ${readError}`;
  if (!message) return '';
  const attempts = formatCount(message.failedAttempts, 'failed attempt');
  return `, ${attempts}${message.why === null ? '' : `: ${message.why}`}`;
}
