/** What changed, newest first: circuits, holds, switches, reloads, certificates, and instances that start, stop or disappear. */

import { callApi } from './connection.js';
import { byId, formatTime, h, keyedList, setText, timeElement } from './dom.js';
import { createPanel } from './panel.js';
import { environmentBadge } from './production.js';

/** As many as a page can show; the period limits how far back the list goes. */
const maxEntries = 200;

/** @returns the panel */
export function createTimeline() {
  const { hours, kind } = byId('timeline-filter').elements;
  let entries = [];
  const renderEntries = keyedList(byId('timeline-entries'), keyOf, (entry) => ({
    element: createEntry(entry),
    update() {},
  }));
  const panel = createPanel({
    section: 'timeline',
    name: 'The timeline',
    everyMs: 10_000,
    read() {
      const to = Date.now();
      const from = to - Number(hours.value) * 3_600_000;
      const query = new URLSearchParams({ from: isoTime(from), to: isoTime(to) });
      return callApi('GET', `/timeline?${query}`);
    },
    render(read) {
      entries = read;
      renderList();
    },
  });
  hours.addEventListener('change', panel.refresh);
  kind.addEventListener('change', renderList);

  function renderList() {
    const matching = entries.filter((entry) => kind.value === '' || entry.kind === kind.value);
    renderEntries(matching.slice(0, maxEntries));
    const rest = matching.length - maxEntries;
    setText(
      byId('timeline-hint'),
      matching.length === 0
        ? 'Nothing in this period.'
        : rest > 0
          ? `${rest} older entries are not shown.`
          : '',
    );
  }

  return panel;
}

const isoTime = (ms) => new Date(ms).toISOString();

/** Two changes in one millisecond differ in something else; the text of the time changes at midnight. */
const keyOf = ({ at, kind, instance, environment, lane, text }) =>
  JSON.stringify([at, formatTime(at), kind, instance, environment, lane, text]);

function createEntry({ at, kind, instance, who, environment, lane, text }) {
  const facts = [
    environment ? environmentBadge(environment) : '',
    lane ?? '',
    who ? h('bdi', {}, `by ${who}`) : '',
    instance ? `on ${instance}` : '',
  ].filter((fact) => fact !== '');
  return h(
    'li',
    { 'data-kind': kind },
    timeElement(at),
    h('span', { class: 'badge', 'data-kind': kind }, kind),
    h(
      'div',
      {},
      h('bdi', {}, text),
      h('p', { class: 'hint' }, ...facts.flatMap((fact, index) => [index > 0 ? ' · ' : '', fact])),
    ),
  );
}
