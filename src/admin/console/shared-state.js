/** Shown while the shared state may have lost payments: what the gateway waits for, and the dialog that accepts the loss. */

import { callApi } from './connection.js';
import { openFormDialog, reasonField, showNotice } from './dialogs.js';
import { byId, h, setText, timeElement } from './dom.js';

/** @returns renders the shared state of this state of the gateway */
export function createSharedState() {
  let shown = '';
  byId('accept-loss').addEventListener('click', openAcceptance);

  return ({ sharedState }) => {
    const { missing, uncovered, cause } = sharedState;
    byId('shared-state').hidden = missing.length === 0 && !uncovered;
    if (shown === JSON.stringify(sharedState)) return;
    shown = JSON.stringify(sharedState);
    setText(byId('shared-state-cause'), cause ?? '');
    byId('missing-instances').replaceChildren(...missing.map(missingInstance));
  };
}

const missingInstance = ({ instance, lastSeen }) =>
  h(
    'li',
    {},
    h('span', { class: 'id' }, instance),
    ...(lastSeen ? [', last seen ', timeElement(lastSeen)] : [', reported by another instance']),
  );

function openAcceptance() {
  return openFormDialog({
    title: 'Accept the loss',
    button: 'Accept',
    body: [
      h(
        'p',
        {},
        'New payments are accepted again. A repeat of a payment that only a missing instance had sent counts as new and is ',
        h('strong', {}, 'paid again'),
        ': ask the bank about these payments first.',
      ),
      reasonField(),
    ],
    send: ({ reason }) => callApi('POST', '/state/accept-loss', { reason }),
    done() {
      showNotice('Loss accepted.');
      return byId('alerts-title');
    },
  });
}
