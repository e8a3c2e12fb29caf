/** All instances of the gateway: whether each is up and ready, and what it does at the moment. */

import {
  byId,
  formatAge,
  formatCount,
  formatDuration,
  formatNumber,
  formatTime,
  h,
  keyedList,
  setText,
} from './dom.js';
import { setHidden } from './panel.js';

const megabytes = (bytes) => `${Math.round(bytes / 1_048_576)} MB`;

/** Of each instance: heading, name of the figure, text of its value. */
const figureColumns = [
  ['Requests/s', 'requestsPerSecond', formatNumber],
  ['Refused/s', 'refusedPerSecond', formatNumber],
  ['Failed/s', 'failedPerSecond', formatNumber],
  ['p50', 'p50Ms', formatDuration],
  ['p99', 'p99Ms', formatDuration],
  ['Queued', 'waiting', formatNumber],
  ['In progress', 'inFlight', formatNumber],
  ['CPU', 'cpuPercent', (value) => `${Math.round(value)} %`],
  ['Memory', 'memoryBytes', megabytes],
  ['Loop delay', 'eventLoopDelayMs', formatDuration],
];

/** @returns renders the instances of this state of the gateway */
export function createFleet() {
  const headings = ['Instance', 'State', ...figureColumns.map(([heading]) => heading)];
  byId('instance-headings').replaceChildren(...headings.map((text) => h('th', { scope: 'col' }, text)));
  const renderRows = keyedList(byId('instance-rows'), ({ name, id }) => `${name} ${id}`, createRow);

  return ({ instances, instance: own, fleet }) => {
    byId('fleet-scope').hidden = fleet.isComplete;
    setText(byId('fleet-scope'), fleet.why ?? '');
    setHidden('fleet', instances.length === 0);
    setText(byId('fleet-summary'), summarize(instances));
    renderRows(
      instances
        .toSorted((one, other) => one.name.localeCompare(other.name))
        .map((instance) => ({ ...instance, isOwn: instance.id === own.id })),
    );
  };
}

function summarize(instances) {
  const up = instances.filter(({ status }) => status === 'up');
  const down = instances.filter(({ status }) => status === 'down').length;
  const unready = up.filter(({ ready }) => !ready).length;
  const versions = [...new Set(up.map(({ version }) => version))];
  return [
    `${formatCount(up.length, 'instance')} up`,
    ...(down > 0 ? [`${down} down`] : []),
    ...(unready > 0 ? [`${unready} not ready`] : []),
    ...(versions.length > 1 ? [`versions ${versions.join(', ')}`] : []),
  ].join(', ');
}

function createRow({ name }) {
  const version = h('span', { class: 'hint' });
  const symbol = h('span', { 'aria-hidden': 'true' });
  const label = h('span');
  const badge = h('span', { class: 'badge' }, symbol, ' ', label);
  const reason = h('span', { class: 'hint' });
  const figures = figureColumns.map(([heading]) => h('td', { class: 'number', 'data-label': heading }));
  const element = h(
    'tr',
    {},
    h('th', { scope: 'row' }, h('span', { class: 'instance-name' }, name), version),
    h('td', { class: 'instance-state', 'data-label': 'State' }, h('span', {}, badge, reason)),
    ...figures,
  );
  return {
    element,
    update(instance) {
      const state = stateOf(instance);
      element.dataset.status = state.badge;
      badge.dataset.state = state.badge;
      setText(symbol, state.symbol);
      setText(label, state.label);
      setText(reason, describe(instance));
      reason.title = instance.reasons.join('\n');
      version.title = `configuration ${instance.configurationHash.slice(0, 12)}, clock ${instance.clockDifferenceMs} ms ahead of the database`;
      const uptime = formatAge(Date.now() - Date.parse(instance.since));
      setText(
        version,
        ` ${instance.version}, ${instance.status === 'up' ? `up ${uptime}` : instance.status}${instance.isOwn ? ', this page' : ''}`,
      );
      for (const [index, [, key, format]] of figureColumns.entries()) {
        const value = instance.status === 'up' ? instance.figures?.[key] : undefined;
        setText(figures[index], value === undefined || value === null ? '–' : format(value));
      }
    },
  };
}

function stateOf({ status, ready }) {
  if (status === 'down') return { badge: 'open', symbol: '■', label: 'down' };
  if (status === 'unknown') return { badge: 'unknown', symbol: '?', label: 'unknown' };
  if (status === 'stopped') return { badge: 'stopped', symbol: '○', label: 'stopped' };
  return ready
    ? { badge: 'closed', symbol: '●', label: 'ready' }
    : { badge: 'half-open', symbol: '▲', label: 'not ready' };
}

/** Warnings of an instance that is ready are alerts of the page, or of that instance: the row only counts them. */
function describe({ status, ready, reasons, lastSeen, circuits }) {
  if (status !== 'up') return ` last seen ${formatTime(lastSeen)}`;
  const warnings = ready && reasons.length > 0 ? [formatCount(reasons.length, 'warning')] : reasons;
  const open = circuits.map(
    ({ environment, lane, state, hold, tenants }) =>
      `${environment} ${lane} ${hold ? `held ${hold}` : state === 'closed' ? `not closed for ${formatCount(tenants.length, 'tenant')}` : state}`,
  );
  const texts = [...warnings, ...open];
  return texts.length === 0 ? '' : ` ${texts.join('; ')}`;
}
