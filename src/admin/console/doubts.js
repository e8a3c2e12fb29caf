/** Payments in doubt, and how they are resolved once the bank has said what became of them. */

import { ask } from './connection.js';
import { choice, field, notify, openOrder, reasonField } from './dialogs.js';
import { byId, clock, h } from './dom.js';

/** @param operator gives who is signed in @returns reads the list again */
export function createDoubts(operator) {
  const place = byId('doubt-list');
  const resolved = () => {
    notify('The doubt is resolved.');
    return byId('doubts-title');
  };

  function tableOf(doubts) {
    const heads = ['Since', 'X-Request-ID', 'Operation', 'Environment', 'Tenant', 'Why', ''];
    return h(
      'div',
      { class: 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': 'doubts-title' },
      h(
        'table',
        { class: 'list' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ...heads.map((head) =>
              h('th', { scope: 'col' }, head || h('span', { class: 'unseen' }, 'Order')),
            ),
          ),
        ),
        h('tbody', {}, ...doubts.map(rowOf)),
      ),
    );
  }

  function rowOf(doubt) {
    const { id, xRequestId, operation, environment, tenant, since, why } = doubt;
    return h(
      'tr',
      {},
      h('td', {}, clock(since)),
      h('td', { class: 'id' }, xRequestId),
      h('td', {}, operation),
      h('td', {}, environment),
      h('td', {}, tenant),
      h('td', { class: 'wide' }, why),
      h(
        'td',
        { class: 'act' },
        h(
          'button',
          {
            type: 'button',
            class: 'small',
            'data-doubt': id,
            'aria-label': `Resolve ${xRequestId}`,
            click: () => openResolution(doubt, operator(), resolved),
          },
          'Resolve…',
        ),
      ),
    );
  }

  return async function refresh() {
    try {
      const doubts = await ask('GET', '/in-doubt');
      const focused = document.activeElement?.dataset?.doubt;
      place.replaceChildren(
        doubts.length === 0 ? h('p', { class: 'calm' }, 'Nothing is in doubt.') : tableOf(doubts),
      );
      if (focused) place.querySelector(`[data-doubt="${CSS.escape(focused)}"]`)?.focus();
    } catch ({ message }) {
      place.replaceChildren(h('p', { class: 'fault' }, message));
    }
  };
}

function openResolution({ id, xRequestId, operation, environment, tenant }, { role }, done) {
  const paymentId = h('input', {
    id: 'payment-id',
    name: 'paymentId',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const named = field('Payment id', paymentId, 'As the bank gave it, if it named one.');
  const initiates = operation === 'initiatePayment';
  named.hidden = true;
  const outcomes = h(
    'fieldset',
    {},
    h('legend', {}, 'What does the bank say?'),
    choice('outcome', 'happened', 'It happened: a repeat is told so, and nothing is sent again'),
    choice('outcome', 'did-not-happen', 'It did not happen: a repeat is sent to the bank'),
  );
  outcomes.addEventListener('change', ({ target }) => {
    named.hidden = !initiates || target.value !== 'happened';
  });
  return openOrder({
    title: 'Resolve a doubt',
    button: 'Resolve',
    role,
    body: [
      h('p', {}, `${operation} of ${tenant} at ${environment}.`),
      h('p', { class: 'id' }, xRequestId),
      outcomes,
      named,
      reasonField(),
    ],
    send: ({ outcome, paymentId: given, reason }) =>
      ask('POST', `/in-doubt/${encodeURIComponent(id)}`, {
        outcome,
        reason,
        ...(given.trim() && outcome === 'happened' && { paymentId: given.trim() }),
      }),
    done,
  });
}
