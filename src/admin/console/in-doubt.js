/** The list of payments in doubt, and the dialog that records the outcome that the bank reported. */

import { callApi } from './connection.js';
import { field, openFormDialog, radioOption, reasonField, showNotice } from './dialogs.js';
import { byId, h, timeElement } from './dom.js';
import { openResolveSeveral } from './resolve-several.js';

/** @param signedIn returns the current operator. @returns a function that reloads the list */
export function createInDoubt(signedIn) {
  const container = byId('in-doubt-list');

  return async function refresh() {
    try {
      const payments = await callApi('GET', '/in-doubt');
      const focusedId = document.activeElement?.dataset?.inDoubt;
      container.replaceChildren(
        ...(payments.length === 0
          ? [h('p', {}, 'No payments in doubt.')]
          : [createTable(payments, signedIn), payments.length > 1 ? severalButton(payments, signedIn) : '']),
      );
      if (focusedId) container.querySelector(`[data-in-doubt="${CSS.escape(focusedId)}"]`)?.focus();
    } catch ({ message }) {
      container.replaceChildren(h('p', { class: 'error' }, message));
    }
  };
}

const headings = ['Since', 'X-Request-ID', 'Operation', 'Environment', 'Tenant', 'Cause'];

function createTable(payments, signedIn) {
  const actionHeading = h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Action'));
  const headingCells = headings.map((heading) => h('th', { scope: 'col' }, heading));
  return h(
    'div',
    { class: 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': 'in-doubt-title' },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, ...headingCells, actionHeading)),
      h('tbody', {}, ...payments.map((payment) => createRow(payment, signedIn))),
    ),
  );
}

const severalButton = (payments, signedIn) =>
  h(
    'p',
    { class: 'row' },
    h(
      'button',
      {
        type: 'button',
        'data-in-doubt': 'several',
        click: () => openResolveSeveral(payments, signedIn()),
      },
      'Resolve in bulk…',
    ),
  );

function createRow(payment, signedIn) {
  const { id, xRequestId, operation, environment, tenant, since, why } = payment;
  const button = h(
    'button',
    {
      type: 'button',
      class: 'small',
      'data-in-doubt': id,
      'aria-label': `Resolve ${xRequestId}`,
      click: () => openResolution(payment, signedIn()),
    },
    'Resolve…',
  );
  return h(
    'tr',
    {},
    h('td', {}, timeElement(since)),
    h('td', { class: 'id' }, xRequestId),
    ...[operation, environment, tenant].map((text) => h('td', {}, text)),
    h('td', { class: 'wide' }, why),
    h('td', { class: 'actions' }, button),
  );
}

function openResolution({ id, xRequestId, operation, environment, tenant }, { role }) {
  const paymentIdInput = h('input', {
    id: 'payment-id',
    name: 'paymentId',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const paymentIdField = field('Payment id', paymentIdInput, 'As returned by the bank, if known.');
  paymentIdField.hidden = true;
  const outcomes = h(
    'fieldset',
    {},
    h('legend', {}, 'Outcome at the bank'),
    radioOption('outcome', 'happened', 'Executed: a repeat gets this outcome and is not sent to the bank'),
    radioOption('outcome', 'did-not-happen', 'Not executed: a repeat is sent to the bank'),
  );
  outcomes.addEventListener('change', ({ target }) => {
    paymentIdField.hidden = operation !== 'initiatePayment' || target.value !== 'happened';
  });
  return openFormDialog({
    title: 'Resolve payment in doubt',
    button: 'Resolve',
    role,
    body: [
      h('p', {}, `${operation}, tenant ${tenant}, environment ${environment}`),
      h('p', { class: 'id' }, xRequestId),
      outcomes,
      paymentIdField,
      reasonField(),
    ],
    send: ({ outcome, paymentId, reason }) =>
      callApi('POST', `/in-doubt/${encodeURIComponent(id)}`, {
        outcome,
        reason,
        ...(paymentId.trim() && outcome === 'happened' && { paymentId: paymentId.trim() }),
      }),
    done() {
      showNotice('Payment resolved.');
      return byId('in-doubt-title');
    },
  });
}
