/** The pages of payments: a list, whose filter is in the address, and the history of one. READ FIRST of payments.html. */

import { callApi } from './connection.js';
import { byId, formatCount, h, setText, timeElement } from './dom.js';
import { filledFields } from './filled-fields.js';
import { showOperator } from './page-header.js';
import { createPanel } from './panel.js';
import { paymentLink } from './payment-link.js';
import { environmentBadge } from './production.js';
import { createSignIn } from './sign-in.js';

const readEverySeconds = 15;

const [, environment, paymentId] = location.pathname.match(/^\/payments\/([^/]+)\/([^/]+)$/) ?? [];
const panel = paymentId === undefined ? createList() : createHistory();
const signIn = createSignIn({ onSignIn: open, onSignOut: () => signOut('') });

async function open() {
  const session = await callApi('GET', '/session').catch(({ message }) => ({ error: message }));
  if (!session.role) return signOut(session.error ?? signIn.whyRefused(false));
  showOperator(session);
  signIn.hide();
  for (const id of ['page', 'user']) byId(id).hidden = false;
  panel.start();
}

function signOut(reason) {
  panel.stop();
  for (const id of ['page', 'user']) byId(id).hidden = true;
  signIn.show(reason);
}

/** @throws Error with a readable message */
async function read(path) {
  try {
    return await callApi('GET', path);
  } catch (thrown) {
    if (thrown.status === 401) signOut(signIn.whyRefused(true));
    throw thrown;
  }
}

function createList() {
  const form = byId('payment-filter');
  const conditions = new URLSearchParams(location.search);
  for (const { name, type } of form.elements) {
    const value = conditions.get(name);
    if (name === '' || value === null) continue;
    form.elements[name].value = type === 'datetime-local' ? localTime(value) : value;
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    location.assign(addressOf(filledFields(form.elements)));
  });
  byId('payments').hidden = false;
  return createPanel({
    section: 'payments',
    name: 'The list of payments',
    everyMs: readEverySeconds * 1_000,
    read: () => read(`/payments?${conditions}`),
    render({ payments, cursor, initiationsInDoubt }) {
      byId('payment-rows').replaceChildren(...payments.map(paymentRow));
      byId('payments-table').hidden = payments.length === 0;
      setText(byId('payments-summary'), summaryOf(payments, cursor));
      const next = byId('next-page');
      next.hidden = cursor === null;
      next.querySelector('a').href = addressOf({ ...Object.fromEntries(conditions), cursor: cursor ?? '' });
      const doubts = byId('initiations-in-doubt');
      doubts.hidden = initiationsInDoubt === 0;
      setText(
        doubts.querySelector('a'),
        `${formatCount(initiationsInDoubt, 'initiation')} in doubt, without a payment id`,
      );
    },
  });
}

const addressOf = (conditions) => `/payments?${new URLSearchParams(conditions)}`;

function summaryOf(payments, cursor) {
  const count = payments.length === 0 ? 'No payment' : formatCount(payments.length, 'payment');
  const place = cursor === null ? '.' : ' on this page. Older ones may follow.';
  return `${count}${place} Read again every ${readEverySeconds} seconds.`;
}

/** What a field of local time contains for a time in UTC. */
function localTime(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const cell = (label, ...content) => h('td', { 'data-label': label }, ...content);

const paymentRow = (payment) =>
  h(
    'tr',
    {},
    cell('Initiated', timeElement(payment.createdAt)),
    cell('Payment', paymentLink(payment.environment, payment.paymentId)),
    cell('Outcome', payment.outcome),
    cell('Status', payment.status ?? '–'),
    cell('Product', payment.product ?? 'unknown'),
    cell('Tenant', payment.tenant),
    cell('Environment', environmentBadge(payment.environment)),
  );

function createHistory() {
  byId('payment').hidden = false;
  setText(byId('payment-id'), decoded(paymentId));
  return createPanel({
    section: 'payment',
    name: 'The payment',
    everyMs: readEverySeconds * 1_000,
    read: () => read(`/payments/${environment}/${paymentId}`),
    render({ payment, history, complete }) {
      const { status, statusSince } = payment;
      const facts = {
        Outcome:
          payment.outcome === 'in-doubt' ? h('a', { href: '/#in-doubt' }, 'in doubt') : payment.outcome,
        Status: status && h('span', {}, `${status} since `, timeElement(statusSince)),
        Product: payment.product,
        Tenant: payment.tenant,
        Environment: environmentBadge(payment.environment),
        Initiated: timeElement(payment.createdAt),
      };
      byId('payment-facts').replaceChildren(
        ...Object.entries(facts)
          .filter(([, value]) => value)
          .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
      );
      byId('history-hint').hidden = complete;
      byId('history-rows').replaceChildren(...history.map(historyRow));
      byId('history-table').hidden = history.length === 0;
    },
  });
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function historyRow({ at, what, operation, outcome, status, error, bankError, text, who, xRequestId }) {
  const result = [outcome, status, error, bankError].filter((part) => part !== null).join(' ');
  return h(
    'tr',
    {},
    cell('Time', timeElement(at)),
    cell('What', h('span', {}, what, operation && h('span', { class: 'hint' }, ` ${operation}`))),
    cell('Result', result || '–'),
    cell('Who', who ?? '–'),
    cell('X-Request-ID', xRequestId ? h('span', { class: 'id' }, xRequestId) : '–'),
    h('td', { class: 'wide', 'data-label': 'Details' }, text ?? '–'),
  );
}

// Scrollable areas must be reachable by keyboard.
for (const element of document.querySelectorAll('[data-scrollable]')) element.tabIndex = 0;
signIn.start();
