/** The audit log, and the verification of its hash chain. */

import { callApi } from './connection.js';
import { byId, formatCount, formatTime, h, keyedList, setText, timeElement } from './dom.js';
import { createPanel } from './panel.js';

/** @returns the panel */
export function createAudit() {
  byId('verify').addEventListener('click', async () => {
    const result = byId('verification');
    setText(result, 'Verifying…');
    try {
      const { records, broken } = await callApi('GET', '/audit/verify');
      result.dataset.level = broken ? 'bad' : 'good';
      setText(
        result,
        broken ? `Hash chain broken: ${broken}.` : `Hash chain intact: ${formatCount(records, 'record')}.`,
      );
    } catch ({ message }) {
      result.dataset.level = 'bad';
      setText(result, message);
    }
  });

  // A record never changes, but the text of its time does at midnight.
  const renderRecords = keyedList(
    byId('records'),
    ({ hash, at }) => `${hash} ${formatTime(at)}`,
    (record) => ({ element: createRow(record), update() {} }),
  );

  return createPanel({
    section: 'audit',
    name: 'The audit log',
    everyMs: 30_000,
    read: () => callApi('GET', '/audit'),
    render(records) {
      byId('records-table').hidden = records.length === 0;
      setText(byId('audit-hint'), records.length === 0 ? 'No records.' : '');
      renderRecords(records);
    },
  });
}

function createRow({ number, at, who, action, outcome, details }) {
  const { reason, preflight, differences = [], acknowledgeDifferences, kind: _, ...rest } = details;
  const failedStep = preflight?.steps?.find(({ ok }) => !ok);
  const facts = Object.entries(rest)
    .filter(([, value]) => typeof value !== 'object' && value !== '' && value !== false)
    .map(([name, value]) => `${name} ${name === 'until' ? formatTime(value) : value}`);
  if (differences.length > 0)
    facts.push(
      `${formatCount(differences.length, 'difference')} ${acknowledgeDifferences ? '' : 'not '}acknowledged`,
    );
  if (failedStep) facts.push(`pre-flight: ${failedStep.step} ${failedStep.detail}`);
  const badge = h('span', { class: 'badge', 'data-outcome': outcome }, outcome);
  // `q` and `bdi` isolate text that operators wrote: its direction cannot change what is beside it.
  const factElements = facts.flatMap((fact, index) => [index > 0 ? ' · ' : '', h('bdi', {}, fact)]);
  return h(
    'tr',
    {},
    h('td', { class: 'number', 'data-label': 'No.' }, String(number)),
    h('td', { 'data-label': 'Time' }, timeElement(at)),
    h('td', { 'data-label': 'Operator' }, who),
    h('td', { 'data-label': 'Action' }, action),
    h('td', { 'data-label': 'Outcome' }, badge),
    h(
      'td',
      { class: 'wide', 'data-label': 'Details' },
      h('span', {}, reason && h('q', {}, String(reason)), ' ', h('span', { class: 'hint' }, ...factElements)),
    ),
  );
}
