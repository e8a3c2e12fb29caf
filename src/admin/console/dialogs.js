/** Dialogs for orders: a form that says what happened if it is refused, and gives the focus back. */

import { byId, h, say } from './dom.js';

let number = 0;

/**
 * Opens a dialog with a form.
 *
 * @param order `title`, `body` (elements), `button` (what the order is called), `role` of the operator,
 *   `send(data)` carries it out with the form's values; it throws to keep the dialog open, with the reason as message;
 *   `done(result)` says where the focus goes then, if not back to where it was
 * @returns the dialog
 */
export function openOrder({ title, body, button, role, send, done }) {
  number += 1;
  const id = `dialog-${number}`;
  let back = document.activeElement;
  const fault = h('p', { class: 'fault', role: 'alert' });
  const submit = h('button', { type: 'submit', class: 'primary' }, button);
  const cancel = h('button', { type: 'button', click: () => dialog.close() }, 'Cancel');
  const looksOnly =
    role === 'operate'
      ? undefined
      : h('p', { class: 'hint' }, 'Your role is to look: orders will be refused.');
  const form = h('form', {}, ...body, looksOnly, fault, h('p', { class: 'buttons' }, cancel, submit));
  const dialog = h('dialog', { 'aria-labelledby': id }, h('h2', { id }, title), form);

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    say(fault, '');
    try {
      const result = await send(Object.fromEntries(new FormData(form)));
      back = done(result) ?? back;
      dialog.close();
    } catch (thrown) {
      say(fault, thrown.message);
    }
    submit.disabled = false;
  });
  dialog.addEventListener('close', () => {
    dialog.remove();
    const isThere = back?.isConnected && back.checkVisibility();
    (isThere ? back : byId('verdict-title')).focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A labelled field. @param control an element with an id */
export const field = (label, control, hint) =>
  h(
    'p',
    { class: 'field' },
    h('label', { for: control.id }, label),
    control,
    hint && h('span', { class: 'hint' }, hint),
  );

export const reasonField = () =>
  field(
    'Reason',
    h('textarea', { id: 'reason', name: 'reason', required: true, maxlength: '500', rows: '2' }),
    'It stands in the audit log, with your name.',
  );

export const choice = (name, value, label, more = {}) =>
  h(
    'label',
    { class: 'choice' },
    h('input', { type: 'radio', name, value, required: true, ...more }),
    ' ',
    label,
  );

let ends;

/** Says what was done, for a while, on the page and to a screen reader. */
export function notify(text) {
  say(byId('notice'), text);
  clearTimeout(ends);
  ends = setTimeout(() => say(byId('notice'), ''), 20_000);
}
