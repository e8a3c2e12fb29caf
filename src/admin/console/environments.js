/** A card for each environment: its address, certificates, queue and circuits, and the button that switches to it. */

import { describePause } from './bank-pauses.js';
import { createCircuitRows } from './circuit-rows.js';
import { byId, formatCount, formatDuration, formatNumber, h, keyedList, setText } from './dom.js';
import { isProduction } from './production.js';

/**
 * @param actions `openSwitch(environment, state)` opens the dialog to switch, `openHold(circuit)` the dialog to hold a circuit,
 *   `showRequest(xRequestId)` searches for a request
 * @returns a function that renders a state
 */
export function createEnvironments({ openSwitch, ...circuitActions }) {
  let current;
  const renderCards = keyedList(
    byId('environment-cards'),
    ({ name }) => name,
    ({ name }) => createCard(name, () => openSwitch(name, current), circuitActions),
  );
  return (state) => {
    current = state;
    renderCards(state.environments.map((environment) => ({ ...environment, state })));
  };
}

const factNames = ['Base URL', 'Standard', 'QWAC', 'QSealC', 'Rate limit', 'In progress', 'Queued'];

function createCard(name, openSwitch, circuitActions) {
  const id = `environment-${name}`;
  const badge = h('span', { class: 'badge', 'data-state': 'active' }, 'active');
  const button = h('button', { type: 'button', 'data-operate': true, click: openSwitch }, 'Make active…');
  const facts = Object.fromEntries(factNames.map((fact) => [fact, h('dd')]));
  const rows = h('tbody');
  const renderCircuits = createCircuitRows(rows, circuitActions);
  const element = h(
    'article',
    { class: 'card environment', 'aria-labelledby': id, 'data-production': isProduction(name) },
    h('header', {}, h('h3', { id, tabindex: '-1' }, name), h('p', {}, badge, button)),
    h(
      'div',
      { class: 'environment-body' },
      h(
        'dl',
        { class: 'facts' },
        ...Object.entries(facts).map(([fact, value]) => h('div', {}, h('dt', {}, fact), value)),
      ),
      h(
        'table',
        { class: 'circuits' },
        h('caption', { class: 'visually-hidden' }, `Circuits of ${name}`),
        rows,
      ),
    ),
  );

  return {
    element,
    update({ baseUrl, standardVersion, certificate, signingCertificate, state }) {
      const isActive = state.active === name;
      element.toggleAttribute('data-active', isActive);
      badge.hidden = !isActive;
      if (isActive && document.activeElement === button) byId(id).focus();
      button.hidden = isActive;
      setText(facts['Base URL'], baseUrl);
      facts['Base URL'].title = baseUrl;
      setText(facts.Standard, standardVersion);
      showCertificate(facts.QWAC, certificate);
      facts.QSealC.parentElement.hidden = !signingCertificate;
      showCertificate(facts.QSealC, signingCertificate);
      const shaper = state.shapers.find(({ environment }) => environment === name);
      if (shaper) showShaper(facts, { ...shaper, ...callsOfAll(name, state.instances) });
      renderCircuits(
        state.circuits
          .filter(({ environment }) => environment === name)
          .map((circuit) => ({ ...circuit, elsewhere: differentElsewhere(circuit, state) })),
      );
    },
  };
}

/** The instances whose circuit is in another state than that of the instance that sends the events. */
function differentElsewhere({ environment, lane, state: ownState }, { instances, instance: own }) {
  return instances
    .filter(({ id, status }) => id !== own.id && status === 'up')
    .map(({ name, circuits }) => {
      const circuit = circuits.find((one) => one.environment === environment && one.lane === lane);
      return { name, state: circuit?.state ?? 'closed' };
    })
    .filter(({ state }) => state !== ownState);
}

function showCertificate(element, certificate) {
  if (!certificate) return setText(element, 'none');
  const { daysLeft, notAfter, subject } = certificate;
  setText(element, daysLeft < 0 ? 'expired' : `${formatCount(daysLeft, 'day')} left`);
  element.title = `${subject}, valid until ${notAfter}`;
  element.dataset.level = daysLeft < 8 ? 'bad' : daysLeft <= 30 ? 'warn' : 'good';
}

/** The calls of all instances that report. */
function callsOfAll(name, instances) {
  const queues = instances
    .filter(({ status }) => status === 'up')
    .flatMap((instance) => instance.queues.filter(({ environment }) => environment === name));
  const sum = (countOf) => queues.reduce((total, queue) => total + countOf(queue), 0);
  const waiting = {
    write: sum((queue) => queue.waiting.write),
    read: sum((queue) => queue.waiting.read),
    status: sum((queue) => queue.waiting.status),
  };
  return { running: sum(({ inFlight }) => inFlight), waiting };
}

function showShaper(facts, { waiting, running, perSecond, pauses, pausedPayments }) {
  const pausedMs = pauses.find(({ scope }) => scope === 'environment')?.pausedMs ?? 0;
  const calls = waiting.write + waiting.read + waiting.status;
  const rate = `${formatNumber(perSecond)}/s`;
  const count = pauses.length + pausedPayments;
  const withPauses = count === 0 ? rate : `${rate}, ${formatCount(count, 'pause')} of the bank`;
  setText(facts['Rate limit'], pausedMs > 0 ? `paused ${formatDuration(pausedMs)}` : withPauses);
  const single = pausedPayments > 0 ? [`${formatCount(pausedPayments, 'single payment')} paused`] : [];
  facts['Rate limit'].title = [...pauses.map(describePause), ...single].join('\n');
  setText(facts['In progress'], running);
  setText(
    facts.Queued,
    calls === 0 ? '0' : `${calls}, about ${formatDuration((calls / perSecond) * 1_000 + pausedMs)}`,
  );
  facts.Queued.title = `write ${waiting.write}, read ${waiting.read}, status ${waiting.status}`;
}
