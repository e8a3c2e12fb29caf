/** Charts over time, as lines or stacked areas: uPlot draws the plot, text beside it gives the values. */

import { chartFigure } from './chart-figure.js';
import { h, setText } from './dom.js';
import uPlot from './uplot.js'; // the npm package; src/admin/console.ts serves it

const axisWidth = 58;

/**
 * @param series `[{ name, label, color }]`: `color` is a class of charts.css; a stacked chart has the first at the bottom
 * @param minScale the smallest value at the top of the scale
 * @param format gives the text of a value
 * @param size `half` for half the width of the page, by default a third
 * @returns `{ element, draw(points, range), destroy() }`: `points` are `{ at, [name]: number | null }`, oldest first; the
 *   range is that of time-range.js; times are in seconds since 1970
 */
export function createLineChart({ title, series, stacked = false, minScale, format, size = '' }) {
  const swatches = series.map(({ color }) => h('span', { class: `swatch ${color}` }));
  const values = series.map(() => h('dd', {}, '–'));
  const plot = h('div', { class: 'plot', role: 'img', 'aria-label': title });
  const fromLabel = h('span');
  const timeLabel = h('span');
  const legend = h(
    'dl',
    { class: 'legend' },
    ...series.map(({ label }, index) =>
      h('div', {}, h('dt', { title: label }, swatches[index], label), values[index]),
    ),
  );
  const element = chartFigure({ title, plot, fromLabel, timeLabel, legend, size });
  let points = [];
  let range;
  let scale = minScale;
  let chart;

  const formatValue = (value) => (value === undefined || value === null ? '–' : format(value));

  /** Shows the values under the pointer, otherwise the newest ones. */
  function showValues() {
    const index = chart.cursor.idx ?? undefined;
    const point = points.at(index ?? -1);
    for (const [position, { name }] of series.entries())
      setText(values[position], formatValue(point?.[name]));
    setText(timeLabel, index === undefined || !point ? range.toLabel : range.labelOf(point.at));
  }

  function createChart(data) {
    const colorOf = (swatch) => () => getComputedStyle(swatch).backgroundColor;
    const style = stacked ? areaSeries : lineSeries;
    const drawn = swatches.map((swatch) => style(colorOf(swatch)));
    const { fontFamily } = getComputedStyle(plot);
    return new uPlot(
      {
        width: plot.clientWidth,
        height: plot.clientHeight,
        padding: [8, 0, 2, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false }, points: { size: 7, ...(stacked && { show: false }) } },
        scales: {
          x: { time: false, range: () => [range.from, range.to] },
          y: { range: () => [0, scale] },
        },
        series: [{}, ...inDrawingOrder(drawn)],
        axes: [
          { show: false },
          {
            side: 1,
            size: axisWidth,
            gap: 6,
            font: `11px ${fontFamily}`,
            stroke: () => getComputedStyle(plot).color,
            splits: () => [scale / 2, scale],
            values: (_chart, splits) => splits.map(format),
            grid: { width: 1, stroke: () => getComputedStyle(plot).outlineColor },
            ticks: { show: false },
          },
        ],
        hooks: { setCursor: [showValues] },
      },
      data,
      plot,
    );
  }

  /** uPlot draws later series over earlier ones: the highest area must come first. */
  const inDrawingOrder = (columns) => (stacked ? columns.toReversed() : columns);

  // uPlot reads the size and the colours only when it draws.
  const resized = new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = plot;
    if (chart && width > 0 && (width !== chart.width || height !== chart.height))
      chart.setSize({ width, height });
  });
  resized.observe(plot);
  const darkTheme = matchMedia('(prefers-color-scheme: dark)');
  const redraw = () => chart?.redraw();
  darkTheme.addEventListener('change', redraw);

  return {
    element,
    draw(nextPoints, nextRange) {
      points = nextPoints;
      range = nextRange;
      setText(fromLabel, range.fromLabel);
      const columns = stacked ? cumulativeColumns(points, series) : columnsOf(points, series);
      scale = niceCeiling(Math.max(minScale, ...columns.flat()));
      const data = [points.map(({ at }) => at), ...inDrawingOrder(columns)];
      if (chart) chart.setData(data);
      else chart = createChart(data);
      showValues();
      const latest = points.at(-1);
      const summary = series.map(({ name, label }) => `${label} ${formatValue(latest?.[name])}`).join(', ');
      plot.setAttribute('aria-label', `${title}: ${latest ? summary : 'no data yet'}`);
    },
    destroy() {
      resized.disconnect();
      darkTheme.removeEventListener('change', redraw);
      chart?.destroy();
    },
  };
}

const lineSeries = (color) => ({
  stroke: color,
  width: 1.8,
  pxAlign: 0,
  points: { show: false, filter: isolatedPoints, size: 3, fill: color },
});
const areaSeries = (color) => ({ fill: color, width: 0, points: { show: false } });

/** A value between two seconds without one is no line: it is drawn as a dot. */
function isolatedPoints({ data }, seriesIndex) {
  const isMissing = (value) => value === undefined || value === null;
  return data[seriesIndex].flatMap((value, index, column) =>
    !isMissing(value) && isMissing(column[index - 1]) && isMissing(column[index + 1]) ? [index] : [],
  );
}

const columnsOf = (points, series) => series.map(({ name }) => points.map((point) => point[name] ?? null));

function cumulativeColumns(points, series) {
  const sums = points.map(() => 0);
  return series.map(({ name }) =>
    points.map((point, index) => {
      sums[index] += point[name] ?? 0;
      return sums[index];
    }),
  );
}

/** 1, 2 or 5 times a power of ten, so that the scale stays the same while the values change. */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}
