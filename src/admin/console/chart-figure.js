/** The frame of a chart: a figure with a title, a time axis and a legend. */

import { h } from './dom.js';

/**
 * @param fromLabel element at the left end of the time axis
 * @param timeLabel element at the right end of the time axis
 * @param size `half` for half the width of the page, by default a third
 */
export function chartFigure({ title, plot, fromLabel, timeLabel, legend, size }) {
  return h(
    'figure',
    { class: `card chart ${size}` },
    h('figcaption', {}, h('h3', {}, title)),
    plot,
    h('p', { class: 'time-axis', 'aria-hidden': 'true' }, fromLabel, timeLabel),
    legend,
  );
}
