/** Deviations of requests and answers from the standard, of all instances; and what was not checked. */

import { callApi } from './connection.js';
import { guides } from './docs-links.js';
import { byId, formatCount, formatNumber, formatTime, h, keyedList, setText } from './dom.js';
import { newTabLink } from './external-links.js';
import { createPanel } from './panel.js';
import { environmentBadge } from './production.js';

/** As many as a page can show; the worst come first. */
const maxRows = 200;
/** How many clients a row names. */
const maxClients = 3;

/** @param showRequest searches for an X-Request-ID. @returns its panel */
export function createContractReport(showRequest) {
  const { level, direction, days } = byId('contract-filter').elements;
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
  byId('contract-guide').append(newTabLink('How to read this', guides.contract));
  days.addEventListener('change', panel.refresh);
  for (const filter of [level, direction]) filter.addEventListener('change', renderList);

  function renderList() {
    const { environments, deviations, omitted } = report;
    const matching = deviations.filter(
      (row) =>
        (level.value === '' ? row.level !== 'usual' : row.level === level.value) &&
        (direction.value === '' || row.direction === direction.value),
    );
    const shown = matching.slice(0, maxRows);
    byId('contract-table').hidden = shown.length === 0;
    setText(
      byId('contract-summary'),
      shown.length === 0
        ? describeNone(environments, level.value, deviations.length)
        : describeShown(shown.length, matching.length, omitted),
    );
    renderRows(shown);
    renderCoverage(environments.map(describeCoverage));
  }

  return panel;
}

const keyOf = ({ environment, operation, direction, path, rule, level, effect, contract }) =>
  JSON.stringify([environment, operation, direction, path, rule, level, effect, contract]);

/** A list without deviations says nothing about messages that were not checked. */
function describeNone(environments, level, total) {
  const isChecked = environments.some(({ requests, responses }) => requests.checked + responses.checked > 0);
  if (!isChecked && total === 0) return 'No message was checked in this period: nothing is known.';
  const kind = level === '' ? 'harmful or notable' : level;
  const others = total === 0 ? '' : ` The filter hides ${formatCount(total, 'deviation')}.`;
  return `No ${kind} deviation in the messages that were checked.${others}`;
}

function describeShown(shown, matching, omitted) {
  const count = shown < matching ? `The worst ${shown} of ${formatCount(matching, 'deviation')}.` : '';
  const rest =
    omitted > 0
      ? `${formatCount(omitted, 'deviation')} more: penstock contract report --environment NAME`
      : '';
  return `${count} ${rest}`.trim();
}

const modes = { report: 'reported', enforce: 'enforced' };

function describeCoverage({ name, standardVersion, requests, responses }) {
  return { key: name, standardVersion, checks: [describeChecks(requests), describeChecks(responses)] };
}

function describeChecks({ mode, sample, checked, checkedSince, skipped }) {
  if (mode === 'off') return 'not checked (off)';
  const since = checkedSince === null ? '' : ` since ${formatTime(checkedSince)}`;
  const left = skipped.map(
    ({ reason, count }) => `, ${count.toLocaleString()} not checked: ${describeReason(reason, sample)}`,
  );
  return `${modes[mode] ?? mode}, ${checked.toLocaleString()} checked${since}${left.join('')}`;
}

/** A gateway of a later release may have other reasons. */
function describeReason(reason, sample) {
  if (reason === 'sampled-out') return `not in the sample of ${formatNumber(sample * 100)} %`;
  return (
    { shed: 'the gateway was busy', failed: 'the check failed', 'not-counted': 'too many kinds' }[reason] ??
    reason
  );
}

function createCoverage({ key }) {
  const version = h('span', { class: 'hint' });
  const checks = [h('dd'), h('dd')];
  return {
    element: h(
      'div',
      {},
      h('dt', {}, environmentBadge(key), ' ', version),
      h('dd', {}, h('dl', {}, h('dt', {}, 'Requests'), checks[0], h('dt', {}, 'Answers'), checks[1])),
    ),
    update({ standardVersion, checks: texts }) {
      setText(version, standardVersion);
      for (const [index, text] of texts.entries()) setText(checks[index], text);
    },
  };
}

function createRow({ environment, operation, direction, path, rule, level, effect }, showRequest) {
  const count = h('td', { class: 'number', 'data-label': 'Count' });
  const clients = h('td', { 'data-label': 'Clients' });
  const notes = h('span', { class: 'hint' });
  const changed = h('span', { class: 'badge', 'data-level': 'notable', hidden: true });
  const first = h('span', { class: 'hint' });
  const last = h('time');
  let requestId;
  const example = h(
    'button',
    { type: 'button', class: 'small', click: () => showRequest(requestId) },
    'Example',
  );
  return {
    element: h(
      'tr',
      {},
      count,
      h(
        'td',
        { 'data-label': 'Deviation', class: 'wide' },
        h('span', {}, h('code', {}, path), ' ', notes, ' ', changed),
      ),
      h(
        'td',
        { 'data-label': 'Effect' },
        h('span', { class: 'lines' }, h('span', { class: 'badge', 'data-level': level }, level), ' ', effect),
      ),
      h(
        'td',
        { 'data-label': 'Message' },
        h(
          'span',
          { class: 'lines' },
          direction === 'request' ? operation : `answer to ${operation}`,
          ' ',
          h('span', {}, environmentBadge(environment)),
        ),
      ),
      clients,
      h('td', { 'data-label': 'Last' }, h('span', {}, last, ' ', first)),
      h('td', { class: 'actions' }, example),
    ),
    update(next) {
      setText(count, next.count.toLocaleString());
      setText(notes, next.current ? rule : `${rule}, of an earlier contract`);
      changed.hidden = next.changedAt === null;
      if (next.changedAt !== null) setText(changed, `changed ${formatTime(next.changedAt)}`);
      setText(clients, describeClients(next.clients));
      setText(last, formatTime(next.lastSeen));
      last.dateTime = last.title = next.lastSeen;
      setText(first, next.count > 1 ? `first ${formatTime(next.firstSeen)}` : '');
      requestId = next.xRequestId;
      example.setAttribute('aria-label', `Example: the last message with ${path} ${rule}, ${requestId}`);
    },
  };
}

function describeClients(clients) {
  const named = clients
    .slice(0, maxClients)
    .map(({ client, count }) => `${client} (${count.toLocaleString()})`);
  const rest = clients.length - named.length;
  return [...named, ...(rest > 0 ? [`${rest} more`] : [])].join(', ');
}
