/** The overall status: the first thing an operator reads on the page, with a link from each problem to its section. */

import { byId, formatCount, h, keyedList, setText } from './dom.js';
import { externalLink, newTabLink } from './external-links.js';
import { findAlerts } from './find-alerts.js';

const symbols = { bad: '■', warn: '▲', note: 'i' };
const spokenLevels = { bad: 'Problem', warn: 'Warning', note: 'Note' };

/** @returns renders the alerts of a view: see `findAlerts` */
export function createAlerts() {
  const renderList = keyedList(byId('alert-list'), ({ level, key }) => `${level} ${key}`, createAlert);

  return (view) => {
    const alerts = findAlerts(view);
    const serious = alerts.filter(({ level }) => level !== 'note');
    // Until everything has been read once, the page does not know whether there are more problems.
    const isLoading = serious.length === 0 && view.panels.some((panel) => panel.isLoading);
    const level = isLoading ? 'loading' : (serious[0]?.level ?? 'good');
    const title = isLoading
      ? 'Loading…'
      : serious.length === 0
        ? 'No active alerts'
        : formatCount(serious.length, 'active alert');
    byId('alerts').dataset.level = level;
    setText(byId('alerts-title'), title);
    byId('overall').dataset.level = level;
    setText(byId('overall'), title);
    document.title = serious.length === 0 ? 'Penstock' : `(${serious.length}) Penstock`;
    renderList(alerts.map((alert) => ({ environment: view.active ?? '', links: view.links, ...alert })));
  };
}

function createAlert({ level }) {
  const symbol = h('span', { class: 'mark', role: 'img', 'aria-label': spokenLevels[level] }, symbols[level]);
  const link = h('a', { class: 'alert-text' });
  const more = h('span', { class: 'alert-links' });
  let shown = '';
  return {
    element: h('li', { 'data-level': level }, symbol, h('span', {}, link, ' ', more)),
    update({ text, href, guide, environment, xRequestId, links }) {
      setText(link, text);
      link.setAttribute('href', href);
      const urls = JSON.stringify([guide, environment, xRequestId, links]);
      if (urls === shown) return;
      shown = urls;
      const shownLinks = [
        newTabLink('Guide', guide),
        externalLink('Grafana', links?.grafana, { environment }),
        xRequestId && externalLink('Traces', links?.traces, { environment, xRequestId }),
      ];
      more.replaceChildren(...shownLinks.filter(Boolean));
    },
  };
}
