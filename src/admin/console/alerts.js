/** The overall status: the first thing an operator reads on the page. The gateway finds the alerts; the page adds what only it knows. */

import { guides } from './docs-links.js';
import { byId, formatAge, formatCount, formatTime, h, keyedList, setText, setTextWithCode } from './dom.js';
import { externalLink, newTabLink } from './external-links.js';

const symbols = { critical: '■', warning: '▲', info: 'i' };
/** In the style sheets. */
const levels = { critical: 'bad', warning: 'warn', info: 'note' };
const order = Object.keys(symbols);
const spokenSeverities = { critical: 'Problem', warning: 'Warning', info: 'Note' };
const answers = { yes: 'Customers can pay', some: 'Some payments fail, or wait', no: 'Customers cannot pay' };

/** The section of the page that shows more, by the beginning of the id. */
const sections = {
  'in-doubt': 'in-doubt',
  'authorisation-': 'in-doubt',
  'circuit-': 'environments',
  'certificate-': 'environments',
  'initiations-': 'errors',
  'requests-fail': 'errors',
  'internal-errors': 'errors',
  instance: 'fleet',
  'configurations-': 'fleet',
  'versions-': 'fleet',
  'clocks-': 'fleet',
  'more-instances': 'fleet',
  overloaded: 'fleet',
  webhook: 'notifications',
  'subscriptions-': 'notifications',
  'bank-has-changed': 'contract',
  'rate-': 'traffic',
  'bank-': 'traffic',
  'calls-': 'traffic',
  'tenant-': 'traffic',
};
const otherSection = 'more';

const sectionOf = (id) =>
  Object.entries(sections).find(([beginning]) => id.startsWith(beginning))?.[1] ?? otherSection;

/** @returns renders the alerts of a view: the state of the gateway, with `panels` (the status of each) and `connection` */
export function createAlerts() {
  const renderList = keyedList(byId('alert-list'), keyOf, createAlert);

  return (view) => {
    const alerts = numbered([...pageAlerts(view), ...view.alerts.map(current)].toSorted(bySeverity));
    const serious = alerts.filter(({ severity }) => severity !== 'info');
    // Until everything has been read once, the page does not know whether there are more problems.
    const isLoading = serious.length === 0 && view.panels.some((panel) => panel.isLoading);
    const level = isLoading ? 'loading' : (levels[serious[0]?.severity] ?? 'good');
    const count = isLoading ? 'Loading…' : countText(serious);
    byId('alerts').dataset.level = level;
    setText(
      byId('alerts-title'),
      isLoading ? count : `${answerOf(view)}: ${count}${notesText(alerts.length - serious.length)}`,
    );
    byId('overall').dataset.level = level;
    setText(byId('overall'), count);
    document.title = serious.length === 0 ? 'Penstock' : `(${serious.length}) Penstock`;
    renderList(alerts.map((alert) => ({ environment: view.active ?? '', links: view.links, ...alert })));
  };
}

/** A critical alert that is over, and only kept for a moment, is a warning, as for `penstock status`. */
const current = (alert) =>
  alert.severity === 'critical' && alert.overSince !== undefined ? { ...alert, severity: 'warning' } : alert;

const bySeverity = (one, other) => order.indexOf(one.severity) - order.indexOf(other.severity);

const keyOf = ({ id, severity, environment, number }) => [id, severity, environment, number].join(' ');

/** Alerts with the same id, severity and environment get different numbers, by their order: their texts change too often for a key. */
function numbered(alerts) {
  const counts = new Map();
  return alerts.map((alert) => {
    const key = keyOf(alert);
    const number = counts.get(key) ?? 0;
    counts.set(key, number + 1);
    return { ...alert, number };
  });
}

const countText = ({ length }) => (length === 0 ? 'no active alerts' : formatCount(length, 'active alert'));

const notesText = (number) => (number === 0 ? '' : `, ${formatCount(number, 'note')}`);

/** While the page is cut off, it does not know whether customers can pay. */
const answerOf = ({ canPay, connection }) =>
  connection.isLive ? answers[canPay] : 'No connection to the gateway';

function pageAlerts({ connection, panels, fleet, alerts }) {
  return [...connectionAlerts(connection), ...fleetAlerts(fleet, alerts), ...panels.flatMap(panelAlerts)];
}

/** The gateway waits for some seconds, in which the section of the instances says it already. */
function fleetAlerts({ isComplete, why }, alerts) {
  if (isComplete || alerts.some(({ id }) => id === 'instances-unseen')) return [];
  return [{ id: 'instances-unseen', severity: 'warning', text: why, guide: guides.console }];
}

/** Without a connection, everything on the page may be out of date. */
function connectionAlerts({ isLive, lastEventMs }) {
  if (isLive) return [];
  const text = `No connection to the gateway: the page shows the state of ${formatTime(lastEventMs)}.`;
  return [{ id: 'connection', severity: 'critical', text, href: '#connection', guide: guides.console }];
}

/** The page must not report that all is well while it does not know. */
function panelAlerts({ name, section, error, isSerious, readAtMs }) {
  if (error === undefined) return [];
  const shown = readAtMs === undefined ? '' : ` The page shows the data of ${formatTime(readAtMs)}.`;
  const text = `${name} could not be read.${shown}`;
  const severity = isSerious ? 'critical' : 'warning';
  return [{ id: `panel ${section}`, severity, text, href: `#${section}`, guide: guides.console }];
}

function createAlert({ severity }) {
  const symbol = h(
    'span',
    { class: 'mark', role: 'img', 'aria-label': spokenSeverities[severity] },
    symbols[severity],
  );
  const link = h('a', { class: 'alert-text' });
  const since = h('span', { class: 'alert-since' });
  const action = h('span', { class: 'alert-action' });
  const more = h('span', { class: 'alert-links' });
  let shown = '';
  return {
    element: h(
      'li',
      { 'data-level': levels[severity] },
      symbol,
      h('span', {}, link, ' ', more, ' ', since, action),
    ),
    update({ id, text, href, guide, environment, links, action: what = '', since: sinceText }) {
      setText(link, text);
      setTextWithCode(action, what);
      setText(since, sinceText === undefined ? '' : sinceOf(Date.parse(sinceText)));
      link.setAttribute('href', href ?? `#${sectionOf(id)}`);
      const urls = JSON.stringify([guide, environment, links]);
      if (urls === shown) return;
      shown = urls;
      const shownLinks = [
        newTabLink('Guide', guide),
        externalLink('Grafana', links?.grafana, { environment }),
      ];
      more.replaceChildren(...shownLinks.filter(Boolean));
    },
  };
}

const sinceOf = (ms) => `Since ${formatTime(ms)} (${formatAge(Date.now() - ms)}).`;
