/** Deviations of requests and answers from the standard, of all instances; and what was not checked. */

import { callApi } from './connection.js';
import { byId, formatTime, h, keyedList, setText } from './dom.js';
import { createPanel } from './panel.js';
import { environmentBadge } from './production.js';

/** As many as a page can show; the worst come first. */
const maxRows = 200;
/** How long "the bank has changed" is an alert. */
const alertMs = 24 * 3_600_000;

/** @param showRequest searches for an X-Request-ID. @returns `panel`, and `changes()`: answers with a new deviation */
export function createContractReport(showRequest) {
  const { level, days } = byId('contract-filter').elements;
  let report = { environments: [], deviations: [], omitted: 0 };
  const renderRows = keyedList(byId('contract-rows'), keyOf, (row) => createRow(row, showRequest));
  const renderCoverage = keyedList(byId('contract-coverage'), ({ key }) => key, createCoverage);
  const panel = createPanel({
    section: 'contract',
    name: 'The report of the contract guard',
    everyMs: 10_000,
    read: () => callApi('GET', `/contract?days=${days.value}`),
    render(read) {
      report = read;
      renderList();
    },
  });
  days.addEventListener('change', panel.refresh);
  level.addEventListener('change', renderList);

  function renderList() {
    const matching = report.deviations.filter((row) =>
      level.value === '' ? row.level !== 'usual' : row.level === level.value,
    );
    byId('contract-table').hidden = matching.length === 0;
    byId('no-deviations').hidden = matching.length > 0;
    renderRows(matching.slice(0, maxRows));
    renderCoverage(report.environments.map(describeCoverage));
  }

  return {
    panel,
    changes: () =>
      report.deviations.filter(({ changedAt }) => changedAt && Date.parse(changedAt) > Date.now() - alertMs),
  };
}

const keyOf = ({ environment, operation, direction, path, rule, contract }) =>
  JSON.stringify([environment, operation, direction, path, rule, contract]);

/** A list without deviations says nothing about messages that were not checked. */
function describeCoverage({ name, standardVersion, requests, responses }) {
  return {
    key: name,
    text: `${name} (${standardVersion}): requests ${describeChecks(requests)}; answers ${describeChecks(responses)}.`,
  };
}

function describeChecks({ mode, checked, checkedSince, skipped }) {
  if (mode === 'off') return 'not checked (off)';
  const since = checkedSince === null ? '' : ` since ${formatTime(checkedSince)}`;
  const left = skipped.map(({ reason, count }) => `, ${count.toLocaleString()} not checked (${reason})`);
  return `${checked.toLocaleString()} checked${since}${left.join('')}`;
}

function createCoverage() {
  const element = h('li');
  return { element, update: ({ text }) => setText(element, text) };
}

function createRow({ environment, operation, direction, path, rule, level, effect, current }, showRequest) {
  const count = h('td', { class: 'number', 'data-label': 'Count' });
  const clients = h('td', { 'data-label': 'Clients' });
  const last = h('time');
  let requestId;
  const example = h(
    'button',
    { type: 'button', class: 'small', click: () => showRequest(requestId) },
    'Example',
  );
  const notes = [rule, level, ...(current ? [] : ['of an earlier contract'])].join(', ');
  return {
    element: h(
      'tr',
      {},
      count,
      h('td', { 'data-label': 'Deviation' }, h('code', {}, path), h('span', { class: 'hint' }, ` ${notes}`)),
      h('td', { 'data-label': 'Effect' }, effect),
      h('td', { 'data-label': 'Operation' }, `${operation} (${direction})`),
      h('td', { 'data-label': 'Environment' }, environmentBadge(environment)),
      clients,
      h('td', { 'data-label': 'Last' }, last),
      h('td', { class: 'actions' }, example),
    ),
    update(next) {
      setText(count, next.count.toLocaleString());
      setText(clients, next.clients.map((one) => `${one.client} (${one.count.toLocaleString()})`).join(', '));
      setText(last, formatTime(next.lastSeen));
      last.dateTime = last.title = next.lastSeen;
      requestId = next.xRequestId;
      example.setAttribute('aria-label', `Example: the last request with ${path} ${rule}, ${requestId}`);
    },
  };
}
