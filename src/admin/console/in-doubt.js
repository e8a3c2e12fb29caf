/** The list of payments in doubt: filter them, see their age and cause, export them, and record what the bank reported. */

import { callApi } from './connection.js';
import { byId, formatAge, formatCount, formatTime, h, keyedList, setText, timeElement } from './dom.js';
import { createExport } from './export-in-doubt.js';
import { createInDoubtFilter } from './in-doubt-filter.js';
import { createPanel } from './panel.js';
import { paymentLink } from './payment-link.js';
import { environmentBadge } from './production.js';
import { openResolution } from './resolution-dialog.js';
import { openResolveSeveral } from './resolve-several.js';

/** More are shown on demand: an outage can leave hundreds. */
const pageSize = 50;

/**
 * @param showRequest searches for an X-Request-ID
 * @returns its panel
 */
export function createInDoubt(showRequest) {
  let payments = [];
  let maxShown = pageSize;
  const filter = createInDoubtFilter(byId('in-doubt-filter'), () => {
    maxShown = pageSize;
    renderList();
  });
  const renderRows = keyedList(
    byId('in-doubt-rows'),
    ({ id }) => id,
    (payment) => createRow(payment, showRequest),
  );
  const panel = createPanel({
    section: 'in-doubt',
    name: 'The list of payments in doubt',
    isSerious: true,
    everyMs: 15_000,
    read: () => callApi('GET', '/in-doubt'),
    render(read) {
      payments = read;
      filter.offer(payments);
      renderList();
    },
  });
  createExport(byId('in-doubt-export'), filter);
  byId('resolve-several').addEventListener('click', () => openResolveSeveral(payments, filter.values()));
  byId('more-in-doubt').addEventListener('click', () => {
    maxShown += pageSize;
    renderList();
  });

  function renderList() {
    const matching = payments.filter(filter.matches);
    const shown = matching.slice(0, maxShown);
    renderRows(shown);
    setText(byId('in-doubt-summary'), summarize(payments, matching.length));
    byId('in-doubt-table').hidden = shown.length === 0;
    byId('in-doubt-filter').hidden = payments.length < 2;
    byId('in-doubt-actions').hidden = payments.length === 0;
    byId('resolve-several').hidden = payments.length < 2;
    const hidden = matching.length - shown.length;
    byId('more-in-doubt').hidden = hidden === 0;
    setText(byId('more-in-doubt'), `Show ${Math.min(hidden, pageSize)} more of ${hidden}`);
  }

  return panel;
}

function summarize(payments, matching) {
  if (payments.length === 0) return 'No payments in doubt.';
  const oldest = formatAge(Date.now() - Date.parse(payments[0].since));
  const byEnvironment = [...Map.groupBy(payments, ({ environment }) => environment)];
  const counts = byEnvironment.map(([name, list]) => `${list.length} in ${name}`).join(', ');
  const filtered = matching === payments.length ? '' : ` The filter matches ${matching}.`;
  return `${formatCount(payments.length, 'payment')}: ${counts}. The oldest is in doubt for ${oldest}.${filtered}`;
}

function createRow(payment, showRequest) {
  const {
    xRequestId,
    operation,
    paymentId,
    environment,
    tenant,
    since,
    lateAnswerUntil,
    bankAnswered,
    severity,
    why,
  } = payment;
  const step =
    severity === 'warning' && h('span', { class: 'hint' }, ' a step of an authorisation, no payment');
  const ofPayment = paymentId && h('span', {}, ' of ', paymentLink(environment, paymentId));
  const age = h('span');
  const late = h('span', { class: 'hint' });
  const cell = (label, ...content) => h('td', { 'data-label': label }, ...content);
  const explain = h(
    'button',
    {
      type: 'button',
      class: 'small',
      'aria-label': `Why? Explain ${xRequestId}`,
      click: () => showRequest(xRequestId),
    },
    'Why?',
  );
  const resolve = h(
    'button',
    {
      type: 'button',
      class: 'small',
      'data-operate': true,
      'aria-label': `Resolve ${xRequestId}`,
      click: () => openResolution(payment),
    },
    'Resolve…',
  );
  return {
    element: h(
      'tr',
      {},
      cell('Age', h('span', {}, age, h('span', { class: 'hint' }, ' since ', timeElement(since)))),
      cell('X-Request-ID', h('span', { class: 'id' }, xRequestId)),
      cell('Operation', h('span', {}, operation, ofPayment, step || '')),
      cell('Environment', environmentBadge(environment)),
      cell('Tenant', tenant),
      h('td', { class: 'wide', 'data-label': 'Cause' }, h('span', {}, why, late)),
      h('td', { class: 'actions' }, explain, ' ', resolve),
    ),
    update() {
      setText(age, formatAge(Date.now() - Date.parse(since)));
      const isAwaited = !bankAnswered && Date.parse(lateAnswerUntil) > Date.now();
      setText(late, isAwaited ? ` A late response may arrive until ${formatTime(lateAnswerUntil)}.` : '');
    },
  };
}
