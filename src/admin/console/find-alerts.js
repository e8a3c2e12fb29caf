/** Finds the problems that need attention in everything that the page shows. */

import { describePause } from './bank-pauses.js';
import { effectiveState, tenantExceptions } from './circuit-rows.js';
import { guides } from './docs-links.js';
import { formatAge, formatCount, formatDuration, formatTime } from './dom.js';
import { findRestarts } from './instance-restarts.js';

const severity = ['bad', 'warn', 'note'];

/**
 * @param view the state of the gateway, and of the page: `panels` (the status of each), `connection`, `inDoubtList`, and
 *   `deadLetters` and `failingSubscriptions`, numbers (all `undefined` until they were read)
 * @returns `{ level: 'bad' | 'warn' | 'note', key, text, href, guide, environment, xRequestId }`, most severe first; `key`
 *   stays the same while numbers in the text change
 */
export function findAlerts(view) {
  const alerts = [
    ...connectionAlerts(view.connection),
    ...instanceAlerts(view),
    ...fleetAlerts(view),
    ...differenceAlerts(view.instances.filter(({ status }) => status === 'up')),
    ...circuitAlerts(view),
    ...view.circuits.flatMap(tenantCircuitAlerts),
    ...inDoubtAlerts(view),
    ...deadLetterAlerts(view),
    ...failingSubscriptionAlerts(view),
    ...requestAlerts(view),
    ...view.shapers.flatMap(queueAlerts),
    ...view.environments.flatMap(environmentCertificateAlerts),
    ...certificateAlerts('public listener: the TLS certificate', view.listenerCertificate, '#more'),
    ...bankChangeAlerts(view.bankChanges ?? []),
    ...view.panels.flatMap(panelAlerts),
  ];
  return alerts.toSorted((one, other) => severity.indexOf(one.level) - severity.indexOf(other.level));
}

/** Without a connection, everything on the page may be out of date. */
function connectionAlerts({ isLive, lastEventMs }) {
  if (isLive) return [];
  const text = `No connection to the gateway: the page shows the state of ${formatTime(lastEventMs)}.`;
  return [{ level: 'bad', key: 'connection', text, href: '#connection', guide: guides.console }];
}

/** The page must not report that all is well while it does not know. */
function panelAlerts({ name, section, error, isSerious, readAtMs }) {
  if (error === undefined) return [];
  const shown = readAtMs === undefined ? '' : ` The page shows the data of ${formatTime(readAtMs)}.`;
  const text = `${name} could not be read.${shown}`;
  const level = isSerious ? 'bad' : 'warn';
  return [{ level, key: `panel ${section}`, text, href: `#${section}`, guide: guides.console }];
}

function instanceAlerts({ readiness: { ready, reasons }, active }) {
  const alerts = reasons.map((reason) => ({
    level: ready ? 'note' : 'bad',
    key: `instance ${reason}`,
    text: `${reason[0].toUpperCase()}${reason.slice(1)}${reason.endsWith('.') ? '' : '.'}`,
    href: '#more',
    guide: guides.readiness,
  }));
  if (active !== null) return alerts;
  const text = 'The active environment is unknown: new payments are refused.';
  const unknown = { level: 'bad', key: 'active', text, href: '#environments', guide: guides.readiness };
  return [unknown, ...alerts];
}

/** The instance that sends the events reports its own problems with `readiness`. */
function fleetAlerts({ instances, instance: own, fleet }) {
  const restarts = findRestarts(instances);
  const restarted = new Set([...restarts.values()].flat());
  const alerts = instances.flatMap((instance) => {
    const { id, name, status, ready, reasons, lastSeen } = instance;
    const alert = { key: `instance ${name} ${id}`, href: '#fleet', guide: guides.instances };
    if (restarted.has(instance)) return [];
    if (status === 'down') {
      const text = `Instance ${name} is down: last seen at ${formatTime(lastSeen)}. At most the records of its last second are lost.`;
      return [{ ...alert, level: 'bad', text }];
    }
    if (status !== 'up' || ready || id === own.id) return [];
    const text = `Instance ${name} is not ready: ${reasons.join('; ')}.`;
    return [{ ...alert, level: 'warn', text }];
  });
  alerts.push(...Array.from(restarts, ([host, crashed]) => restartAlert(host, crashed)));
  if (fleet.isComplete) return alerts;
  return [
    ...alerts,
    { level: 'warn', key: 'fleet', text: fleet.why, href: '#fleet', guide: guides.readiness },
  ];
}

/** The clocks may differ by this. Milliseconds. */
const maxClockDifferenceMs = 2_000;

function differenceAlerts(running) {
  const alert = { href: '#fleet', guide: guides.instances };
  const groups = [...Map.groupBy(running, ({ configurationHash }) => configurationHash).values()];
  const versions = [...new Set(running.map(({ version }) => version))].toSorted();
  const clocks = running.map(({ clockDifferenceMs }) => clockDifferenceMs);
  const differenceMs = Math.max(...clocks) - Math.min(...clocks);
  const alerts = [];
  if (groups.length > 1) {
    const names = groups.map((group) => group.map(({ name }) => name).join(', ')).join(' / ');
    const text = `The instances run with different configurations: ${names}. Load the file again on all of them (penstock reload --all), or restart those that need it.`;
    alerts.push({ ...alert, level: 'note', key: 'configurations', text });
  }
  if (versions.length > 1)
    alerts.push({
      ...{ ...alert, level: 'note', key: 'versions' },
      text: `The instances run different versions: ${versions.join(', ')}.`,
    });
  if (differenceMs > maxClockDifferenceMs)
    alerts.push({
      ...{ ...alert, level: 'warn', key: 'clocks' },
      text: `The clocks of the instances differ by ${formatDuration(differenceMs)}: synchronize them, for example with NTP.`,
    });
  return alerts;
}

/** One alert for each host: an instance that crashes again and again must not hide the other problems. */
function restartAlert(host, crashed) {
  const times = formatCount(crashed.length, 'time');
  const text = `${host} has crashed ${times} within the last hour, last at ${formatTime(crashed.at(-1).lastSeen)}; it was started again. Records of its last second may be missing.`;
  return { level: 'warn', key: `restarts ${host}`, text, href: '#fleet', guide: guides.instances };
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
  return Array.from(groups, ([key, group]) => {
    const [{ environment, reason }] = group;
    const state = effectiveState(group[0]);
    const until = group.map((circuit) => circuit.until).toSorted()[0];
    const lanes = new Intl.ListFormat('en-GB').format(group.map(({ lane }) => lane));
    const cause = firstCause(group);
    const description = circuitTexts[state](reason, until ? formatTime(until) : 'once');
    return {
      level: environment === active && !mildStates.has(state) ? 'bad' : 'warn',
      key: `circuits ${key}`,
      text: `${environment}: ${lanes} ${group.length === 1 ? 'circuit' : 'circuits'} ${description}${describeCause(cause)}`,
      href: '#environments',
      guide: guides.circuits,
      environment,
      xRequestId: cause?.xRequestId,
    };
  });
}

/** Of the call that failed first; `reason` may be that of a later failed probe. */
const firstCause = (circuits) =>
  circuits.flatMap(({ cause }) => cause ?? []).toSorted((one, other) => one.at.localeCompare(other.at))[0];

const describeCause = (cause) =>
  cause ? ` First cause, at ${formatTime(cause.at)}: ${cause.why.replace(/\.$/, '')}.` : '';

/** The bank works for other tenants. */
function tenantCircuitAlerts(circuit) {
  if (effectiveState(circuit) !== 'closed' || circuit.tenants.length === 0) return [];
  const { environment, lane, tenants } = circuit;
  const text = `${environment}: ${lane} circuit not closed for ${formatCount(tenants.length, 'tenant')} (${tenantExceptions(circuit)}).`;
  const key = `tenants ${environment} ${lane}`;
  return [{ level: 'warn', key, text, href: '#environments', guide: guides.circuits, environment }];
}

/** The number is that of the list on the page. The gateway's own count is used only while the list could not be read. */
function inDoubtAlerts({ inDoubt, inDoubtList, panels }) {
  const isRead = panels.some(({ section, error, readAtMs }) => section === 'in-doubt' && !error && readAtMs);
  const count = isRead ? inDoubtList.length : inDoubt;
  if (!count) return [];
  const oldest = isRead ? `, the oldest for ${formatAge(Date.now() - Date.parse(inDoubtList[0].since))}` : '';
  const areSteps = isRead && inDoubtList.every(({ severity }) => severity === 'warning');
  const what = formatCount(count, areSteps ? 'authorisation step' : 'payment');
  const text = `${what} in doubt${oldest}: ask the bank for the outcome.`;
  const level = areSteps ? 'warn' : 'bad';
  return [{ level, key: 'in-doubt', text, href: '#in-doubt', guide: guides.inDoubt }];
}

function deadLetterAlerts({ deadLetters }) {
  if (!deadLetters) return [];
  const text = `${formatCount(deadLetters, 'webhook was', 'webhooks were')} given up: send ${deadLetters === 1 ? 'it' : 'them'} again when the endpoint works.`;
  return [{ level: 'warn', key: 'dead-letters', text, href: '#notifications', guide: guides.deadLetters }];
}

function failingSubscriptionAlerts({ failingSubscriptions: failing }) {
  if (!failing) return [];
  const text = `The status of ${formatCount(failing, 'subscribed payment')} cannot be read, so ${failing === 1 ? 'its' : 'their'} webhooks are not sent: the bank may need header fields that callerHeaders or pollHeaders must name.`;
  return [
    { level: 'warn', key: 'failing-subscriptions', text, href: '#notifications', guide: guides.deadLetters },
  ];
}

/** Below this number of requests in a minute, a share says little. */
const minRequests = 10;

function requestAlerts({ seconds }) {
  const minute = seconds.slice(-60);
  const sum = (name) => minute.reduce((total, second) => total + second[name], 0);
  const requests = sum('requests');
  if (requests < minRequests) return [];
  const alertFor = (name, minShare, verb, levelOf) => {
    const share = sum(name) / requests;
    if (share < minShare) return [];
    const text = `${Math.round(share * 100)} % of requests in the last minute ${verb} (${sum(name)} of ${requests}).`;
    return [{ level: levelOf(share), key: name, text, href: '#traffic', guide: guides.errors }];
  };
  return [
    ...alertFor('failed', 0.05, 'failed at the bank', (share) => (share < 0.2 ? 'warn' : 'bad')),
    // A refusal may be the caller's fault. Refusals that are not have an alert of their own: circuits, queues, readiness.
    ...alertFor('refused', 0.2, 'were refused by the gateway', () => 'warn'),
  ];
}

function queueAlerts({ environment, waiting, perSecond, pauses, tenantsAtLimit }) {
  const warning = (what, text) => ({
    level: 'warn',
    key: `queue ${environment} ${what}`,
    text: `${environment}: ${text}`,
    href: '#traffic',
    guide: guides.shaping,
    environment,
  });
  const calls = waiting.write + waiting.read + waiting.status;
  const wait = formatDuration((calls / perSecond) * 1_000);
  return [
    ...pauses.map((pause) =>
      warning(
        `paused ${Object.values({ ...pause, pausedMs: '' }).join(' ')}`,
        `${describePause(pause)}, as requested by the bank.`,
      ),
    ),
    ...tenantsAtLimit.map((tenant) =>
      warning(
        `tenant ${tenant}`,
        `tenant ${tenant} uses all its concurrency slots. Its further calls are queued; other tenants are not affected.`,
      ),
    ),
    ...(calls > perSecond
      ? [warning('calls', `${formatCount(calls, 'call')} queued; estimated wait ${wait}.`)]
      : []),
  ];
}

/** For a day: somebody must ask the bank whether the change is intended. One alert for all new deviations of an operation. */
function bankChangeAlerts(changes) {
  const groups = Map.groupBy(changes, ({ environment, operation }) => `bank ${environment} ${operation}`);
  return Array.from(groups, ([key, group]) => {
    const { environment, operation, path, rule, changedAt, xRequestId } = group.toSorted((one, other) =>
      other.changedAt.localeCompare(one.changedAt),
    )[0];
    const which =
      group.length === 1
        ? `a new deviation: ${path} (${rule})`
        : `${group.length} new deviations, last ${path} (${rule})`;
    return {
      level: 'warn',
      key,
      text: `${environment}: the bank has changed at ${formatTime(changedAt)}: answers to ${operation} have ${which}.`,
      href: '#contract',
      guide: guides.bankChange,
      environment,
      xRequestId,
    };
  });
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
  const level = daysLeft < 8 ? 'bad' : 'warn';
  return [{ level, key: `certificate ${subject}`, text, href, guide: guides.certificates }];
}
