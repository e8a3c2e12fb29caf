/** The problems that need attention, most severe first: the first thing an operator reads on the page. */

import { effectiveState, tenantExceptions } from './circuit-rows.js';
import { byId, formatCount, formatDuration, formatTime, h, keyedList, setText } from './dom.js';

const symbols = { bad: '■', warn: '▲', note: 'i' };
const spokenLevels = { bad: 'Problem', warn: 'Warning', note: 'Note' };

/** @returns renders the alerts of this state of the gateway */
export function createAlerts() {
  const renderList = keyedList(
    byId('alert-list'),
    ({ level, text }) => `${level} ${text}`,
    ({ level, text, href }) => {
      const symbol = h(
        'span',
        { class: 'mark', role: 'img', 'aria-label': spokenLevels[level] },
        symbols[level],
      );
      return { element: h('li', { 'data-level': level }, symbol, h('a', { href }, text)), update() {} };
    },
  );
  return (state) => {
    const alerts = findAlerts(state);
    const level = alerts[0]?.level ?? 'note';
    byId('alerts').dataset.level = level === 'note' ? 'good' : level;
    const serious = alerts.filter((alert) => alert.level !== 'note').length;
    setText(byId('alerts-title'), serious === 0 ? 'No active alerts' : formatCount(serious, 'active alert'));
    document.title = serious === 0 ? 'Penstock' : `(${serious}) Penstock`;
    renderList(alerts);
  };
}

const severity = ['bad', 'warn', 'note'];

/** @returns `{ level: 'bad' | 'warn' | 'note', text, href }`, most severe first */
function findAlerts(state) {
  const alerts = [
    ...instanceAlerts(state),
    ...circuitAlerts(state),
    ...state.circuits.flatMap(tenantCircuitAlerts),
    ...inDoubtAlerts(state),
    ...requestAlerts(state),
    ...state.shapers.flatMap(queueAlerts),
    ...state.environments.flatMap(environmentCertificateAlerts),
    ...certificateAlerts('public listener: the TLS certificate', state.listenerCertificate, '#more'),
  ];
  return alerts.toSorted((one, other) => severity.indexOf(one.level) - severity.indexOf(other.level));
}

function instanceAlerts({ readiness: { ready, reasons }, sharedState, active }) {
  const alerts = reasons.map((reason) => ({
    level: ready ? 'note' : 'bad',
    text: `${reason[0].toUpperCase()}${reason.slice(1)}${reason.endsWith('.') ? '' : '.'}`,
    href: reason === sharedState.cause ? '#shared-state' : '#more',
  }));
  if (active !== null) return alerts;
  const text = 'The active environment is unknown: new payments are refused.';
  return [{ level: 'bad', text, href: '#environments' }, ...alerts];
}

const circuitTexts = {
  open: (reason, at) => `open: ${reason}. Next probe at ${at}.`,
  'half-open': () => 'half-open: the gateway is probing the bank.',
  probation: () => 'on probation: one payment at a time until one succeeds.',
  'held-open': (reason, at) => `held open by an operator until ${at}: ${reason}.`,
  'held-closed': (reason, at) => `held closed by an operator until ${at}, regardless of failures: ${reason}.`,
};

/** Payments still go through. */
const mildStates = new Set(['probation', 'held-closed']);

/** One alert for all lanes of an environment that are in the same state for the same reason. */
function circuitAlerts({ circuits, active }) {
  const groups = Map.groupBy(
    circuits.filter((circuit) => effectiveState(circuit) !== 'closed'),
    (circuit) => `${circuit.environment} ${effectiveState(circuit)} ${circuit.reason}`,
  );
  return Array.from(groups.values(), (group) => {
    const [{ environment, reason }] = group;
    const state = effectiveState(group[0]);
    const until = group.map((circuit) => circuit.until).toSorted()[0];
    const lanes = new Intl.ListFormat('en-GB').format(group.map(({ lane }) => lane));
    const description = circuitTexts[state](reason, until ? formatTime(until) : 'once');
    return {
      level: environment === active && !mildStates.has(state) ? 'bad' : 'warn',
      text: `${environment}: ${lanes} ${group.length === 1 ? 'circuit' : 'circuits'} ${description}`,
      href: '#environments',
    };
  });
}

/** The bank works for other tenants. */
function tenantCircuitAlerts(circuit) {
  if (effectiveState(circuit) !== 'closed' || circuit.tenants.length === 0) return [];
  const text = `${circuit.environment}: ${circuit.lane} circuit not closed for ${formatCount(circuit.tenants.length, 'tenant')} (${tenantExceptions(circuit)}).`;
  return [{ level: 'warn', text, href: '#environments' }];
}

function inDoubtAlerts({ inDoubt }) {
  if (!inDoubt) return [];
  const text = `${formatCount(inDoubt, 'payment')} in doubt: ask the bank for the outcome.`;
  return [{ level: 'bad', text, href: '#in-doubt' }];
}

/** Below this number of requests in a minute, a share says little. */
const minRequests = 10;

function requestAlerts({ seconds }) {
  const minute = seconds.slice(-60);
  const sum = (name) => minute.reduce((total, second) => total + second[name], 0);
  const requests = sum('requests');
  if (requests < minRequests) return [];
  const alertFor = (name, minShare, verb) => {
    const share = sum(name) / requests;
    const text = `${Math.round(share * 100)} % of requests in the last minute ${verb} (${sum(name)} of ${requests}).`;
    return share < minShare ? [] : [{ level: share < 0.2 ? 'warn' : 'bad', text, href: '#traffic' }];
  };
  return [
    ...alertFor('failed', 0.05, 'failed at the bank'),
    ...alertFor('refused', 0.2, 'were refused by the gateway'),
  ];
}

function queueAlerts({ environment, waiting, perSecond, pausedMs, tenantsAtLimit }) {
  const warning = (text) => ({ level: 'warn', text: `${environment}: ${text}`, href: '#traffic' });
  const calls = waiting.write + waiting.read + waiting.status;
  const pause = formatDuration(Math.ceil(pausedMs / 1_000) * 1_000);
  const wait = formatDuration((calls / perSecond) * 1_000);
  return [
    ...(pausedMs > 0 ? [warning(`calls paused for ${pause}, as requested by the bank (Retry-After).`)] : []),
    ...tenantsAtLimit.map((tenant) =>
      warning(
        `tenant ${tenant} uses all its concurrency slots. Its further calls are queued; other tenants are not affected.`,
      ),
    ),
    ...(calls > perSecond ? [warning(`${formatCount(calls, 'call')} queued; estimated wait ${wait}.`)] : []),
  ];
}

function environmentCertificateAlerts({ name, certificate, signingCertificate }) {
  return [
    ...certificateAlerts(`${name}: the QWAC`, certificate),
    ...certificateAlerts(`${name}: the QSealC`, signingCertificate),
  ];
}

function certificateAlerts(subject, certificate, href = '#environments') {
  if (!certificate || certificate.daysLeft > 30) return [];
  const { daysLeft } = certificate;
  const text =
    daysLeft < 0
      ? `${subject} expired ${formatCount(-daysLeft, 'day')} ago.`
      : `${subject} expires in ${formatCount(daysLeft, 'day')}.`;
  return [{ level: daysLeft < 8 ? 'bad' : 'warn', text, href }];
}
