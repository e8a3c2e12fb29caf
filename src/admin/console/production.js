/** What the page does differently for production: another colour, and confirmation by the typed name. */

import { field } from './dialogs.js';
import { h } from './dom.js';

/** The gateway asks for the name of this environment before changes that cannot be undone, so the dialogs do too. */
export const isProduction = (environment) => environment === 'production';

/** The name of an environment; production has a colour of its own. */
export const environmentBadge = (environment) =>
  h('span', { class: 'environment-name', 'data-production': isProduction(environment) }, environment);

/** A field in which the operator types the name of an environment; the form cannot be sent without it. */
export function confirmationField(environment, id = 'confirm') {
  const input = h('input', {
    id,
    name: 'confirm',
    required: true,
    pattern: environment,
    autocomplete: 'off',
    spellcheck: 'false',
    title: `Type ${environment}`,
  });
  return field(`Type ${environment} to confirm`, input);
}

/** Shows or hides a confirmation field; a hidden one does not prevent sending the form. */
export function requireConfirmation(element, isRequired) {
  element.hidden = !isRequired;
  element.querySelector('input').disabled = !isRequired;
}
