/** The bar at the top of the page: the active environment, the operator with the role, and the connection. */

import { byId, formatTime, setText } from './dom.js';
import { isProduction } from './production.js';

/** Shows the active environment; production gets a colour of its own, on the whole bar. */
export function showActiveEnvironment({ active }) {
  const element = byId('active-environment');
  setText(element, active ?? 'unknown environment');
  document.body.toggleAttribute('data-production', active !== null && isProduction(active));
}

/** Shows who is signed in. Elements with `data-operate` are visible for the role `operate` only (base.css). */
export function showOperator({ name, role }) {
  setText(byId('operator'), role === 'operate' ? name : `${name} (read-only)`);
  document.body.dataset.role = role;
}

/**
 * @param state `none`, `connecting`, `live` or `lost`
 * @param reason why the connection was lost
 */
export function showConnection(state, reason = '') {
  const texts = {
    none: '',
    connecting: 'Connecting…',
    live: `Live, ${formatTime(Date.now())}`,
    lost: `${reason} Reconnecting…`,
  };
  const element = byId('connection');
  if (element.dataset.connection !== state) element.dataset.connection = state;
  // A screen reader announces changes of the connection, not the time of every second.
  element.setAttribute('aria-live', state === 'live' ? 'off' : 'polite');
  setText(element, texts[state]);
  document.body.classList.toggle('stale', state === 'lost');
}
