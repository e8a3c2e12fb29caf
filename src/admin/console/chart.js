/** Small charts in SVG of the last five minutes: lines or stacked areas, and strips of states. */

import { h, keyed, say } from './dom.js';

const spanS = 300;
const width = 600;
const height = 120;

/** x of a second, where `now` is at the right end. */
const xOf = (at, now) => width - ((now - at) / spanS) * width;

/** 1, 2 or 5 times a power of ten, so that the scale rests while values move. */
function ceilingOf(value, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, least)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= Math.max(value, least));
}

/**
 * @param series `[{ name, label, tone }]`; stacked, the first is at the bottom
 * @param say a value in words; `least` is the smallest full scale
 * @returns `{ element, draw(points, now) }`: points are `{ at, [name]: number | null }`, the oldest first
 */
export function createChart({ title, series, stacked = false, least, words, size = '' }) {
  const lines = series.map(({ tone }) => h('path', { class: `${stacked ? 'area' : 'line'} ${tone}` }));
  const cursor = h('line', { class: 'cursor', y1: '0', y2: String(height), visibility: 'hidden' });
  const grid = [0.5, 1].map((part) =>
    h('line', {
      class: 'grid',
      x1: '0',
      x2: String(width),
      y1: String(height * (1 - part)),
      y2: String(height * (1 - part)),
    }),
  );
  const svg = h(
    'svg',
    {
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': title,
    },
    ...grid,
    ...lines,
    cursor,
  );
  const top = h('span', { class: 'top', 'aria-hidden': 'true' });
  const middle = h('span', { class: 'middle', 'aria-hidden': 'true' });
  const values = series.map(() => h('dd', {}, '–'));
  const legend = h(
    'dl',
    { class: 'legend' },
    ...series.map(({ label, tone }, index) =>
      h('div', {}, h('dt', { class: `key ${tone}`, title: label }, label), values[index]),
    ),
  );
  const when = h('span', {}, 'now');
  const element = frame(title, h('div', { class: 'plot' }, svg, top, middle), when, legend, size);
  let shown = { points: [], now: 0 };
  let pointedAt;

  svg.addEventListener('pointermove', ({ clientX }) => {
    const { left, width: wide } = svg.getBoundingClientRect();
    pointedAt = Math.round(spanS * (1 - (clientX - left) / wide));
    tell();
  });
  svg.addEventListener('pointerleave', () => {
    pointedAt = undefined;
    tell();
  });

  /** The values under the pointer, else the newest. */
  function tell() {
    const { points, now } = shown;
    const at = pointedAt === undefined ? undefined : now - pointedAt;
    const point = at === undefined ? points.at(-1) : points.find((one) => one.at === at);
    for (const [index, { name }] of series.entries()) say(values[index], wordsOf(point?.[name]));
    say(when, pointedAt ? `${pointedAt} s ago` : 'now');
    cursor.setAttribute('visibility', at === undefined ? 'hidden' : 'visible');
    if (at === undefined) return;
    cursor.setAttribute('x1', String(xOf(at, now)));
    cursor.setAttribute('x2', String(xOf(at, now)));
  }

  const wordsOf = (value) => (value === undefined || value === null ? '–' : words(value));

  return {
    element,
    draw(points, now) {
      shown = { points, now };
      const heights = points.map((point) => series.map(({ name }) => point[name]));
      const sums = stacked ? heights.map(runningSums) : heights;
      const ceiling = ceilingOf(Math.max(0, ...sums.flat().map((value) => value ?? 0)), least);
      const y = (value) => height - (value / ceiling) * (height - 2) - 1;
      lines.forEach((line, index) => {
        const at = (which) => points.map((point, one) => [xOf(point.at, now), sums[one][which]]);
        line.setAttribute(
          'd',
          stacked ? areaOf(at(index), index === 0 ? undefined : at(index - 1), y) : lineOf(at(index), y),
        );
      });
      say(top, words(ceiling));
      say(middle, words(ceiling / 2));
      tell();
      const latest = points.at(-1);
      svg.setAttribute(
        'aria-label',
        `${title}: ${latest ? series.map(({ name, label }) => `${label} ${wordsOf(latest[name])}`).join(', ') : 'nothing yet'}`,
      );
    },
  };
}

const runningSums = (values) =>
  values.map((_, index) => values.slice(0, index + 1).reduce((sum, value) => sum + (value ?? 0), 0));

/** Seconds without a value leave a gap. */
function lineOf(places, y) {
  let pen = 'M';
  return places
    .map(([x, value]) => {
      if (value === null || value === undefined) {
        pen = 'M';
        return '';
      }
      const piece = `${pen}${x.toFixed(1)} ${y(value).toFixed(1)}`;
      const dot = pen === 'M' ? 'h.5' : ''; // a value alone is a dot
      pen = 'L';
      return piece + dot;
    })
    .join('');
}

function areaOf(upper, lower, y) {
  if (upper.length === 0) return '';
  const there = upper.map(([x, value]) => `${x.toFixed(1)} ${y(value).toFixed(1)}`);
  const back = (lower ?? upper.map(([x]) => [x, 0]))
    .toReversed()
    .map(([x, value]) => `${x.toFixed(1)} ${y(value).toFixed(1)}`);
  return `M${[...there, ...back].join('L')}Z`;
}

/** @param size `half` for half the width of the page, else a third */
function frame(title, plot, when, legend, size) {
  const axis = h('p', { class: 'axis', 'aria-hidden': 'true' }, h('span', {}, '5 min ago'), when);
  return h(
    'figure',
    { class: `card chart ${size}` },
    h('figcaption', {}, h('h3', {}, title)),
    plot,
    axis,
    legend,
  );
}

/**
 * A strip for each name: the state by colour and by height.
 *
 * @returns `{ element, draw(samples, now) }`: samples are `{ at, states: { [name]: state } }`
 */
export function createStrips({ title, words }) {
  const body = h('div', { class: 'strips' });
  const rows = keyed(
    body,
    ({ name }) => name,
    ({ name }) => createStrip(name, words),
  );
  const element = frame(title, body, h('span', {}, 'now'), undefined, 'half');
  return {
    element,
    draw(samples, now) {
      const names = Object.keys(samples.at(-1)?.states ?? {});
      rows(
        names.map((name) => ({
          name,
          now,
          runs: runsOf(samples.map(({ at, states }) => [at, states[name]])),
        })),
      );
    },
  };
}

function createStrip(name, words) {
  const svg = h('svg', { viewBox: `0 0 ${width} 12`, preserveAspectRatio: 'none', role: 'img' });
  const value = h('span', { class: 'state' });
  return {
    element: h(
      'div',
      { class: 'strip' },
      h('span', { class: 'name', title: name }, ...name.split(' ').map((part) => h('span', {}, part))),
      svg,
      value,
    ),
    show({ runs, now }) {
      const state = runs.at(-1)?.state;
      say(value, words(state));
      svg.setAttribute('aria-label', `${name}: ${words(state)}`);
      svg.replaceChildren(
        ...runs.map(({ state: each, from, to }) => {
          const high = each === 'closed' ? 4 : 12;
          return h('rect', {
            'data-state': each ?? 'unknown',
            x: xOf(from, now).toFixed(1),
            y: String((12 - high) / 2),
            width: Math.max(1, xOf(to, now) - xOf(from, now)).toFixed(1),
            height: String(high),
          });
        }),
      );
    },
  };
}

/** Equal states in a row, `to` exclusive; a pause of the samples ends a run. */
function runsOf(places) {
  const runs = [];
  for (const [at, state] of places) {
    const last = runs.at(-1);
    if (last?.state === state && at - last.to < 3) last.to = at + 1;
    else runs.push({ state, from: at, to: at + 1 });
  }
  return runs;
}
