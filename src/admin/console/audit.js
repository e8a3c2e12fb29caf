/** The audit log, and whether its chain holds. */

import { ask } from './connection.js';
import { byId, clock, clockText, count, h, keyed, say } from './dom.js';

/** @returns reads the log again */
export function createAudit() {
  byId('verify').addEventListener('click', async () => {
    const place = byId('verified');
    say(place, 'Walking the chain…');
    try {
      const { records, broken } = await ask('GET', '/audit/verify');
      place.dataset.level = broken ? 'bad' : 'good';
      say(place, broken ? `Broken: ${broken}.` : `${count(records, 'record')}, the chain holds.`);
    } catch ({ message }) {
      place.dataset.level = 'bad';
      say(place, message);
    }
  });

  // A record never changes; only its time is worded anew once it is of another day.
  const list = keyed(
    byId('records'),
    ({ hash, at }) => `${hash} ${clockText(at)}`,
    (record) => ({ element: rowOf(record), show() {} }),
  );

  return async function refresh() {
    try {
      const records = await ask('GET', '/audit');
      say(byId('audit-hint'), records.length === 0 ? 'Nothing is recorded yet.' : '');
      list(records);
    } catch ({ message }) {
      say(byId('audit-hint'), message);
    }
  };
}

function rowOf({ number, at, who, action, outcome, details }) {
  const { reason, preflight, kind: _, ...rest } = details;
  const failed = preflight?.steps?.find(({ ok }) => !ok);
  const facts = Object.entries(rest)
    .filter(([, value]) => typeof value !== 'object' && value !== '' && value !== false)
    .map(([name, value]) => `${name} ${name === 'until' ? clockText(value) : value}`);
  if (failed) facts.push(`pre-flight: ${failed.step} ${failed.detail}`);
  const badge = h('span', { class: 'badge', 'data-outcome': outcome }, outcome);
  const cells = [h('td', { class: 'number' }, String(number)), h('td', {}, clock(at))];
  const more = [
    reason && h('q', {}, String(reason)),
    ' ',
    h(
      'span',
      { class: 'hint' },
      ...facts.flatMap((fact, index) => [index > 0 ? ' · ' : '', h('bdi', {}, fact)]),
    ),
  ];
  return h(
    'tr',
    {},
    ...cells,
    ...[who, action, badge].map((what) => h('td', {}, what)),
    h('td', { class: 'wide' }, ...more),
  );
}
