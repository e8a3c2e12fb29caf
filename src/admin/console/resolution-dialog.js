/** The dialog that records the outcome of one payment in doubt, as the bank reported it. */

import { callApi } from './connection.js';
import { field, openFormDialog, radioOption, reasonField, showNotice } from './dialogs.js';
import { byId, h } from './dom.js';
import { confirmationField, environmentBadge, isProduction, requireConfirmation } from './production.js';

export function openResolution({ id, xRequestId, operation, environment, tenant, why }) {
  const paymentIdInput = h('input', {
    id: 'payment-id',
    name: 'paymentId',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const paymentIdField = field('Payment id', paymentIdInput, 'As returned by the bank, if known.');
  paymentIdField.hidden = true;
  // A wrong "not executed" leads to a second payment.
  const confirmation = confirmationField(environment);
  requireConfirmation(confirmation, false);
  const outcomes = outcomeFields('Outcome at the bank');
  outcomes.addEventListener('change', ({ target }) => {
    paymentIdField.hidden = operation !== 'initiatePayment' || target.value !== 'happened';
    requireConfirmation(confirmation, isProduction(environment) && target.value === 'did-not-happen');
  });
  return openFormDialog({
    title: 'Resolve payment in doubt',
    button: 'Resolve',
    body: [
      h('p', {}, `${operation}, tenant ${tenant}, environment `, environmentBadge(environment)),
      h('p', { class: 'id' }, xRequestId),
      h('p', { class: 'hint' }, why),
      outcomes,
      paymentIdField,
      reasonField(),
      confirmation,
    ],
    send: ({ outcome, paymentId, reason, confirm }) =>
      callApi('POST', `/in-doubt/${encodeURIComponent(id)}`, {
        outcome,
        reason,
        ...(paymentId.trim() && outcome === 'happened' && { paymentId: paymentId.trim() }),
        ...(confirm && { confirm }),
      }),
    done() {
      showNotice('Payment resolved.');
      return byId('in-doubt-title');
    },
  });
}

/** The outcomes that an operator can record, as the field `outcome`. */
export const outcomeFields = (legend) =>
  h(
    'fieldset',
    {},
    h('legend', {}, legend),
    radioOption('outcome', 'happened', 'Executed: a repeat gets 409 and is not sent to the bank'),
    radioOption('outcome', 'did-not-happen', 'Not executed: a repeat is sent to the bank'),
  );
