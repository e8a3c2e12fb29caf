/** The most frequent errors of the last hour, of all instances: by code, client, operation and bank status. */

import { callApi } from './connection.js';
import { byId, formatTime, h, keyedList, setText } from './dom.js';
import { createPanel } from './panel.js';
import { environmentBadge } from './production.js';

/** @param showRequest searches for an X-Request-ID. @returns the panel */
export function createTopErrors(showRequest) {
  const renderRows = keyedList(byId('error-rows'), keyOf, (error) => createRow(error, showRequest));
  return createPanel({
    section: 'errors',
    name: 'The list of errors',
    everyMs: 10_000,
    read: () => callApi('GET', '/errors'),
    render(errors) {
      byId('errors-table').hidden = errors.length === 0;
      byId('no-errors').hidden = errors.length > 0;
      renderRows(errors);
    },
  });
}

const keyOf = ({ code, client, tenant, operation, environment, bankStatus, bankError }) =>
  JSON.stringify([code, client, tenant, operation, environment, bankStatus, bankError]);

function createRow({ code, client, tenant, operation, environment, bankStatus, bankError }, showRequest) {
  const count = h('td', { class: 'number', 'data-label': 'Count' });
  const last = h('time');
  let requestId;
  const error =
    code === null
      ? `bank: ${bankStatus}${bankError ? ` ${bankError}` : ''}`
      : h('a', { href: `/errors.html#${code.toLowerCase()}`, target: '_blank' }, code);
  const status = code !== null && bankStatus ? h('span', { class: 'hint' }, ` bank: ${bankStatus}`) : '';
  const explain = h(
    'button',
    { type: 'button', class: 'small', click: () => showRequest(requestId) },
    'Example',
  );
  return {
    element: h(
      'tr',
      {},
      count,
      h('td', { 'data-label': 'Error' }, error, status),
      h(
        'td',
        { 'data-label': 'Client' },
        client === tenant || !tenant ? (client ?? '–') : `${client} (${tenant})`,
      ),
      h('td', { 'data-label': 'Operation' }, operation ?? '–'),
      h('td', { 'data-label': 'Environment' }, environment ? environmentBadge(environment) : '–'),
      h('td', { 'data-label': 'Last' }, last),
      h('td', { class: 'actions' }, explain),
    ),
    update(next) {
      setText(count, next.count.toLocaleString());
      setText(last, formatTime(next.lastAt));
      last.dateTime = last.title = next.lastAt;
      requestId = next.xRequestId;
      explain.hidden = !requestId;
      explain.setAttribute(
        'aria-label',
        `Example: the last request with ${code ?? `bank status ${bankStatus}`}, ${requestId}`,
      );
    },
  };
}
