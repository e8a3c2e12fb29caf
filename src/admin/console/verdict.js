/** What is wrong, in order of weight: the first thing to read at three in the morning. */

import { effectOf } from './circuit-rows.js';
import { byId, clockText, count, duration, h, keyed, say } from './dom.js';

/** @returns `{ level: 'bad' | 'warn' | 'note', text, where }`, the worst first */
function troublesOf(state) {
  const troubles = [
    ...ofInstance(state),
    ...ofCircuits(state),
    ...ofDoubts(state),
    ...ofRequests(state),
    ...state.shapers.flatMap(ofQueue),
    ...state.environments.flatMap(ofCertificates),
    ...expiring('TPP systems’ door: the certificate', state.listenerCertificate, '#more'),
  ];
  const order = ['bad', 'warn', 'note'];
  return troubles.toSorted((one, other) => order.indexOf(one.level) - order.indexOf(other.level));
}

function ofInstance({ readiness: { ready, reasons }, active }) {
  const told = reasons.map((reason) => ({
    level: ready ? 'note' : 'bad',
    text: `${reason[0].toUpperCase()}${reason.slice(1)}.`,
    where: '#more',
  }));
  if (active !== null) return told;
  return [
    {
      level: 'bad',
      text: 'Which environment is active is not known: new payments are refused.',
      where: '#environments',
    },
    ...told,
  ];
}

const effects = {
  open: (reason, at) => `stopped, ${reason}. The bank is asked again at ${at}.`,
  'half-open': () => 'stopped. The bank is being asked whether it is back.',
  probation: () => 'on probation: one payment at a time, until one succeeds.',
  'held-open': (reason, at) => `held open by operators until ${at}: ${reason}.`,
  'held-closed': (reason, at) =>
    `held closed by operators until ${at}, whatever the bank answers: ${reason}.`,
};

/** The lanes of an environment that are stopped for the same reason are one trouble. */
function ofCircuits({ circuits, active }) {
  const groups = Map.groupBy(
    circuits.filter((circuit) => effectOf(circuit) !== 'closed'),
    (circuit) => `${circuit.environment} ${effectOf(circuit)} ${circuit.reason}`,
  );
  return Array.from(groups.values(), (group) => {
    const [{ environment, reason }] = group;
    const effect = effectOf(group[0]);
    const until = group.map((circuit) => circuit.until).toSorted()[0];
    const lanes = new Intl.ListFormat('en-GB').format(group.map(({ lane }) => lane));
    const what = effects[effect](reason, until ? clockText(until) : 'once');
    return {
      level: environment === active && !mild.has(effect) ? 'bad' : 'warn',
      text: `${environment}: ${lanes} ${group.length === 1 ? 'is' : 'are'} ${what}`,
      where: '#environments',
    };
  });
}

/** Payments still go through. */
const mild = new Set(['probation', 'held-closed']);

const ofDoubts = ({ inDoubt }) =>
  inDoubt > 0
    ? [
        {
          level: 'bad',
          text: `${count(inDoubt, 'payment is', 'payments are')} in doubt: ask the bank, then say what happened.`,
          where: '#doubts',
        },
      ]
    : [];

function ofRequests({ seconds }) {
  const minute = seconds.slice(-60);
  const sum = (name) => minute.reduce((so, second) => so + second[name], 0);
  const requests = sum('requests');
  if (requests < 10) return [];
  const told = (name, least, words) => {
    const part = sum(name) / requests;
    const text = `${Math.round(part * 100)} % of the last minute's requests ${words}: ${sum(name)} of ${requests}.`;
    return part < least ? [] : [{ level: part < 0.2 ? 'warn' : 'bad', text, where: '#traffic' }];
  };
  return [
    ...told('failed', 0.05, 'failed at the bank'),
    ...told('refused', 0.2, 'were refused by the gateway'),
  ];
}

function ofQueue({ environment, waiting, perSecond, pausedMs }) {
  const calls = waiting.write + waiting.read + waiting.status;
  const paused =
    pausedMs > 0
      ? [
          {
            level: 'warn',
            text: `${environment}: the bank wants to be left alone for ${duration(Math.ceil(pausedMs / 1_000) * 1_000)}.`,
            where: '#traffic',
          },
        ]
      : [];
  if (calls <= perSecond) return paused;
  const text = `${environment}: ${count(calls, 'call waits', 'calls wait')}, the last one about ${duration((calls / perSecond) * 1_000)}.`;
  return [...paused, { level: 'warn', text, where: '#traffic' }];
}

function ofCertificates({ name, certificate, signingCertificate }) {
  return [
    ...expiring(`${name}: the certificate`, certificate),
    ...expiring(`${name}: the seal`, signingCertificate),
  ];
}

function expiring(what, certificate, where = '#environments') {
  if (!certificate || certificate.daysLeft > 30) return [];
  const { daysLeft } = certificate;
  const text =
    daysLeft < 0
      ? `${what} is over since ${count(-daysLeft, 'day')}.`
      : `${what} ends in ${count(daysLeft, 'day')}.`;
  return [{ level: daysLeft < 8 ? 'bad' : 'warn', text, where }];
}

const marks = { bad: '■', warn: '▲', note: 'i' };
const spoken = { bad: 'Trouble', warn: 'Warning', note: 'Note' };

export function createVerdict() {
  const list = keyed(
    byId('troubles'),
    ({ level, text }) => `${level} ${text}`,
    ({ level, text, where }) => {
      const mark = h('span', { class: 'mark', role: 'img', 'aria-label': spoken[level] }, marks[level]);
      return { element: h('li', { 'data-level': level }, mark, h('a', { href: where }, text)), show() {} };
    },
  );
  return (state) => {
    const troubles = troublesOf(state);
    const serious = troubles.filter(({ level }) => level !== 'note');
    const level = troubles[0]?.level ?? 'note';
    document.querySelector('.verdict').dataset.level = level === 'note' ? 'good' : level;
    say(
      byId('verdict-title'),
      serious.length === 0
        ? 'All is well'
        : `${count(serious.length, 'thing needs', 'things need')} attention`,
    );
    document.title = serious.length === 0 ? 'Penstock' : `(${serious.length}) Penstock`;
    list(troubles);
  };
}
