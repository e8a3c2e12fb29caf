/** The filter of the payments in doubt: the same conditions as those of the admin API's preview. */

import { h } from './dom.js';
import { filledFields } from './filled-fields.js';

/**
 * @param form contains the fields `environment`, `tenant`, `operation`, `olderThan` (such as `60min`) and `why`
 * @param onChange called after each change by the operator
 * @returns `matches(payment)`; `values()`: the filled conditions as the API takes them; `offer(payments)`: sets the choices
 */
export function createInDoubtFilter(form, onChange) {
  const { environment, tenant, operation, olderThan, why } = form.elements;
  const choices = { environment, tenant, operation };
  form.addEventListener('input', onChange);
  form.addEventListener('submit', (event) => event.preventDefault());
  const isOldEnough = ({ since }) =>
    olderThan.value === '' || Date.now() - Date.parse(since) >= Number.parseInt(olderThan.value, 10) * 60_000;

  return {
    matches: (payment) =>
      Object.entries(choices).every(([name, { value }]) => value === '' || payment[name] === value) &&
      isOldEnough(payment) &&
      payment.why.toLowerCase().includes(why.value.trim().toLowerCase()),
    values: () => filledFields(form.elements),
    offer(payments) {
      for (const [name, select] of Object.entries(choices))
        setChoices(
          select,
          payments.map((payment) => payment[name]),
        );
    },
  };
}

/** Keeps the operator's choice, also if no payment has it any more. */
export function setChoices(select, values) {
  const chosen = select.value;
  const choices = [...new Set(['', ...values, chosen])];
  if ([...select.options].map(({ value }) => value).join('\n') === choices.join('\n')) return;
  select.replaceChildren(...choices.map((value) => h('option', { value }, value === '' ? 'all' : value)));
  select.value = chosen;
}
