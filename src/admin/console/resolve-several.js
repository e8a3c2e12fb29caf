/** The dialog that resolves several payments in doubt at once: a filter, a preview of what matches, and the outcome. */

import { callApi } from './connection.js';
import { field, openFormDialog, reasonField, showNotice } from './dialogs.js';
import { byId, formatCount, formatTime, h } from './dom.js';
import { filledFields } from './filled-fields.js';
import { confirmationField, isProduction, requireConfirmation } from './production.js';
import { outcomeFields } from './resolution-dialog.js';

/** The preview lists this many, and counts the rest. */
const maxListed = 10;

/** The gateway resolves some hundred payments in a second. */
const maxMs = 300_000;

/** @param payments all that are in doubt. @param initial the conditions to begin with, as the API takes them */
export function openResolveSeveral(payments, initial) {
  const namesOf = (key) => [...new Set(payments.map((payment) => payment[key]))];
  const preview = h('div', { class: 'report preview', role: 'status' });
  const confirmations = namesOf('environment')
    .filter(isProduction)
    .map((name) => confirmationField(name, 'several-confirm'));
  const filter = h(
    'fieldset',
    {},
    h('legend', {}, 'Filter'),
    field('Environment', select('several-environment', 'environment', namesOf('environment'))),
    field('Tenant', select('several-tenant', 'tenant', ['', ...namesOf('tenant')])),
    field('Operation', select('several-operation', 'operation', ['', ...namesOf('operation')])),
    field('Older than', createAgeSelect()),
    field('From', h('input', { id: 'several-from', name: 'from', type: 'datetime-local', step: '1' })),
    field('To', h('input', { id: 'several-to', name: 'to', type: 'datetime-local', step: '1' })),
    field('Cause contains', textInput('several-why', 'why'), 'For example 504.'),
  );
  let selection;

  const dialog = openFormDialog({
    title: 'Resolve payments in doubt',
    button: 'Resolve all',
    body: [
      filter,
      preview,
      outcomeFields('Outcome at the bank, of all of them'),
      reasonField(),
      ...confirmations,
    ],
    async send({ outcome, reason, confirm: name }) {
      const body = { ...filterIn(filter), selection, outcome, reason, ...(name && { confirm: name }) };
      try {
        return await callApi('POST', '/in-doubt', body, maxMs);
      } catch (thrown) {
        if (thrown.status === 409) await show(); // other payments match now: the operator checks the new list
        throw thrown;
      }
    },
    done({ resolved, early }) {
      const rest = early > 0 ? ` ${early} still in doubt: the bank may still execute them.` : '';
      showNotice(`${formatCount(resolved, 'payment')} resolved.${rest}`);
      return byId('in-doubt-title');
    },
  });

  async function show() {
    const current = filterIn(filter);
    for (const element of confirmations) requireConfirmation(element, isProduction(current.environment));
    selection = undefined; // until the preview is shown, the gateway refuses
    try {
      const found = await callApi('GET', `/in-doubt/preview?${new URLSearchParams(current)}`);
      if (JSON.stringify(current) !== JSON.stringify(filterIn(filter))) return; // a later preview follows
      selection = found.selection;
      preview.replaceChildren(...previewOf(found.requests));
    } catch ({ message }) {
      preview.replaceChildren(h('p', { class: 'error' }, message));
    }
  }
  filter.addEventListener('change', show);
  setInitial(filter, initial);
  show();
  return dialog;
}

function previewOf(requests) {
  const items = requests
    .slice(0, maxListed)
    .map(({ xRequestId, operation, tenant, since, why }) =>
      h('li', {}, `${formatTime(since)}, ${operation}, tenant ${tenant}, ${xRequestId}: ${why}`),
    );
  const more = requests.length - items.length;
  return [
    h('p', {}, h('strong', {}, `${formatCount(requests.length, 'payment matches', 'payments match')}.`)),
    h('ul', {}, ...items, ...(more > 0 ? [h('li', {}, `and ${more} more`)] : [])),
  ];
}

/** The same choices as in the filter of the list. */
function createAgeSelect() {
  const copy = byId('in-doubt-age').cloneNode(true);
  copy.id = 'several-age';
  copy.value = '';
  return copy;
}

/** Fills the fields; `datetime-local` takes the local time without an offset. */
function setInitial(fieldset, conditions) {
  for (const [name, value] of Object.entries(conditions)) {
    const control = fieldset.querySelector(`[name="${name}"]`);
    control.value = control.type === 'datetime-local' ? localTime(value) : value;
  }
}

function localTime(iso) {
  const date = new Date(iso);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const filterIn = (fieldset) => filledFields(fieldset.querySelectorAll('input, select'));

const textInput = (id, name) => h('input', { id, name, autocomplete: 'off', spellcheck: 'false' });

const select = (id, name, values) =>
  h('select', { id, name }, ...values.map((value) => h('option', { value }, value === '' ? 'all' : value)));
