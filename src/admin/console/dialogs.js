/** Modal dialogs with a form: they show the reason if the gateway refuses, and restore the focus when they close. */

import { byId, h, setText } from './dom.js';

let dialogCount = 0;

/**
 * Opens a modal dialog with a form. The document gets the event `operator-action` when the gateway has accepted it.
 *
 * @param options `title`; `body` (elements); `button`, the label of the submit button;
 *   `send(data)` submits the form's values; if it throws, the dialog stays open and shows the error message;
 *   `done(result)` may return the element to focus after closing; default: the element focused before opening
 * @returns the dialog
 */
export function openFormDialog({ title, body, button, send, done }) {
  dialogCount += 1;
  const id = `dialog-${dialogCount}`;
  let focusAfter = document.activeElement;
  const error = h('p', { class: 'error', role: 'alert' });
  const submit = h('button', { type: 'submit', class: 'primary' }, button);
  const cancel = h('button', { type: 'button', click: () => dialog.close() }, 'Cancel');
  const form = h('form', {}, ...body, error, h('p', { class: 'buttons' }, cancel, submit));
  const dialog = h('dialog', { 'aria-labelledby': id }, h('h2', { id }, title), form);

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    setText(error, '');
    try {
      const result = await send(Object.fromEntries(new FormData(form)));
      focusAfter = done(result) ?? focusAfter;
      dialog.close();
      document.dispatchEvent(new Event('operator-action'));
    } catch (thrown) {
      setText(error, thrown.message);
    }
    submit.disabled = false;
  });
  dialog.addEventListener('close', () => {
    dialog.remove();
    const canFocus = focusAfter?.isConnected && focusAfter.checkVisibility();
    (canFocus ? focusAfter : byId('alerts-title')).focus({ preventScroll: true });
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
    'Recorded in the audit log with your name.',
  );

export const radioOption = (name, value, label, attributes = {}) =>
  h(
    'label',
    { class: 'choice' },
    h('input', { type: 'radio', name, value, required: true, ...attributes }),
    ' ',
    label,
  );

const noticeMs = 20_000;
let noticeTimer;

/** Shows a message about the completed action for `noticeMs`; a screen reader announces it. */
export function showNotice(text) {
  setText(byId('notice'), text);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => setText(byId('notice'), ''), noticeMs);
}
