/** The audit log, and the verification of its hash chain. */

import { callApi } from './connection.js';
import { byId, formatCount, formatTime, h, keyedList, setText, timeElement } from './dom.js';

/** @returns loads the log again */
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

  return async function refresh() {
    try {
      const records = await callApi('GET', '/audit');
      setText(byId('audit-hint'), records.length === 0 ? 'No records.' : '');
      renderRecords(records);
    } catch ({ message }) {
      setText(byId('audit-hint'), message);
    }
  };
}

function createRow({ number, at, who, action, outcome, details }) {
  const { reason, preflight, kind: _, ...rest } = details;
  const failedStep = preflight?.steps?.find(({ ok }) => !ok);
  const facts = Object.entries(rest)
    .filter(([, value]) => typeof value !== 'object' && value !== '' && value !== false)
    .map(([name, value]) => `${name} ${name === 'until' ? formatTime(value) : value}`);
  if (failedStep) facts.push(`pre-flight: ${failedStep.step} ${failedStep.detail}`);
  const badge = h('span', { class: 'badge', 'data-outcome': outcome }, outcome);
  // `q` and `bdi` isolate text that operators wrote: its direction cannot change what is beside it.
  const factElements = facts.flatMap((fact, index) => [index > 0 ? ' · ' : '', h('bdi', {}, fact)]);
  return h(
    'tr',
    {},
    h('td', { class: 'number' }, String(number)),
    h('td', {}, timeElement(at)),
    ...[who, action, badge].map((cell) => h('td', {}, cell)),
    h(
      'td',
      { class: 'wide' },
      reason && h('q', {}, String(reason)),
      ' ',
      h('span', { class: 'hint' }, ...factElements),
    ),
  );
}
