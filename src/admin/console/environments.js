/** A card for each environment: where it is, how it is, and the switch. */

import { createCircuitRows } from './circuit-rows.js';
import { byId, count, duration, h, keyed, say } from './dom.js';

/** @param acts `switchTo(environment, state)` and `hold(circuit)` open their dialogs */
export function createEnvironments(acts) {
  let state;
  const cards = keyed(
    byId('environment-cards'),
    ({ name }) => name,
    ({ name }) => createCard(name, { ...acts, switchTo: () => acts.switchTo(name, state) }),
  );
  return (next) => {
    state = next;
    cards(next.environments.map((environment) => ({ ...environment, state: next })));
  };
}

function createCard(name, { switchTo, hold }) {
  const id = `environment-${name}`;
  const badge = h('span', { class: 'badge', 'data-state': 'active' }, 'new payments go here');
  const button = h('button', { type: 'button', class: 'switch', click: switchTo }, 'Send new payments here…');
  const facts = Object.fromEntries(
    ['Bank', 'Standard', 'Certificate', 'Seal', 'Rate', 'Under way', 'Waiting'].map((fact) => [
      fact,
      h('dd'),
    ]),
  );
  const rows = h('tbody');
  const showCircuits = createCircuitRows(rows, hold);
  const element = h(
    'article',
    { class: 'card environment', 'aria-labelledby': id },
    h('header', {}, h('h3', { id, tabindex: '-1' }, name), h('p', { class: 'place' }, badge, button)),
    h(
      'dl',
      { class: 'facts' },
      ...Object.entries(facts).map(([fact, value]) => h('div', {}, h('dt', {}, fact), value)),
    ),
    h('table', { class: 'circuits' }, h('caption', { class: 'unseen' }, `Circuits of ${name}`), rows),
  );

  return {
    element,
    show({ baseUrl, standardVersion, certificate, signingCertificate, state }) {
      const isActive = state.active === name;
      element.toggleAttribute('data-active', isActive);
      badge.hidden = !isActive;
      if (isActive && document.activeElement === button) byId(id).focus();
      button.hidden = isActive;
      say(facts.Bank, baseUrl);
      facts.Bank.title = baseUrl;
      say(facts.Standard, standardVersion);
      showCertificate(facts.Certificate, certificate);
      facts.Seal.parentElement.hidden = !signingCertificate;
      showCertificate(facts.Seal, signingCertificate);
      const shaper = state.shapers.find(({ environment }) => environment === name);
      if (shaper) showShaper(facts, shaper);
      showCircuits(state.circuits.filter(({ environment }) => environment === name));
    },
  };
}

function showCertificate(place, certificate) {
  if (!certificate) return say(place, 'none');
  const { daysLeft, notAfter, subject } = certificate;
  say(place, daysLeft < 0 ? 'is over' : `${count(daysLeft, 'day')} left`);
  place.title = `${subject}, until ${notAfter}`;
  place.dataset.level = daysLeft < 8 ? 'bad' : daysLeft <= 30 ? 'warn' : 'good';
}

function showShaper(facts, { waiting, running, perSecond, pausedMs }) {
  const calls = waiting.write + waiting.read + waiting.status;
  const rounded = perSecond.toLocaleString(undefined, { maximumFractionDigits: 1 });
  say(facts.Rate, pausedMs > 0 ? `paused ${duration(pausedMs)}` : `${rounded}/s`);
  say(facts['Under way'], running);
  say(
    facts.Waiting,
    calls === 0 ? '0' : `${calls}, about ${duration((calls / perSecond) * 1_000 + pausedMs)}`,
  );
  facts.Waiting.title = `write ${waiting.write}, read ${waiting.read}, status ${waiting.status}`;
}
