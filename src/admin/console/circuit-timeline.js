/** The states of all circuits in the last five minutes: a bar for each, with the state as colour and height. */

import { chartFigure } from './chart-figure.js';
import { stateLabel } from './circuit-rows.js';
import { h, keyedList, setText } from './dom.js';

const spanSeconds = 300;
const height = 12;
const closedHeight = 4;

/** @returns `{ element, draw(samples, now) }`: `samples` are `{ at, states: { [name]: state } }`, oldest first */
export function createCircuitTimeline(title) {
  const plot = h('div', { class: 'timeline' });
  const renderBars = keyedList(
    plot,
    ({ name }) => name,
    ({ name }) => createBar(name),
  );
  return {
    element: chartFigure({
      title,
      plot,
      fromLabel: h('span', {}, '5 min ago'),
      timeLabel: h('span', {}, 'now'),
      size: 'half',
    }),
    draw(samples, now) {
      const names = Object.keys(samples.at(-1)?.states ?? {});
      renderBars(
        names.map((name) => ({
          name,
          now,
          intervals: intervalsOf(samples.map(({ at, states }) => ({ at, state: states[name] }))),
        })),
      );
    },
  };
}

function createBar(name) {
  const svg = h('svg', { viewBox: `0 0 ${spanSeconds} ${height}`, preserveAspectRatio: 'none', role: 'img' });
  const label = h('span', { class: 'state' });
  const nameParts = name.split(' ').map((part) => h('span', {}, part));
  return {
    element: h('div', { class: 'bar' }, h('span', { class: 'name', title: name }, ...nameParts), svg, label),
    update({ intervals, now }) {
      const text = stateLabel(intervals.at(-1)?.state ?? 'unknown');
      setText(label, text);
      svg.setAttribute('aria-label', `${name}: ${text}`);
      svg.replaceChildren(...intervals.map((interval) => createInterval(interval, now)));
    },
  };
}

function createInterval({ state = 'unknown', from, to }, now) {
  const barHeight = state === 'closed' ? closedHeight : height;
  return h('rect', {
    'data-state': state,
    x: String(spanSeconds - (now - from)),
    y: String((height - barHeight) / 2),
    width: String(to - from),
    height: String(barHeight),
  });
}

/** Merges equal consecutive states; `to` is exclusive. A pause of three seconds ends an interval. */
function intervalsOf(samples) {
  const intervals = [];
  for (const { at, state } of samples) {
    const last = intervals.at(-1);
    if (last?.state === state && at - last.to < 3) last.to = at + 1;
    else intervals.push({ state, from: at, to: at + 1 });
  }
  return intervals;
}
