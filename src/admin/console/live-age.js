/** The age of the data that come with the events: every section with an element `.age[data-live]` shows it. */

import { formatAge, formatTime, setText } from './dom.js';

/** @param connection `{ isLive, lastEventMs }` */
export function showLiveAge({ isLive, lastEventMs }) {
  for (const element of document.querySelectorAll('.age[data-live]')) {
    element.dataset.level = isLive ? 'note' : 'warn';
    const old = `${formatAge(Date.now() - lastEventMs)} old, from ${formatTime(lastEventMs)}`;
    setText(element, isLive ? 'live' : old);
  }
}
