/** The circuits of one environment: a row a lane, with its state, why, and until when. */

import { clockText, h, keyed, say } from './dom.js';

const marks = {
  closed: '●',
  'half-open': '◐',
  probation: '◐',
  open: '■',
  'held-open': '■',
  'held-closed': '◆',
};
const words = {
  closed: 'closed',
  'half-open': 'asking the bank',
  probation: 'on probation',
  open: 'open',
  'held-open': 'held open',
  'held-closed': 'held closed',
};

/** What is in effect: an operator's hold before what is measured. */
export const effectOf = ({ state, hold }) => (hold ? `held-${hold}` : state);

/** Words and sign of a state, as charts name it too. */
export const wordsOf = (effect) => words[effect] ?? effect;

function whyOf({ state, hold, until, reason }) {
  const at = until ? clockText(until) : '';
  if (hold) return `until ${at}: ${reason}`;
  if (state === 'closed') return 'calls go through';
  if (state === 'open') return `${reason}; asked again at ${at}`;
  if (state === 'probation') return 'one payment at a time, until one succeeds';
  return 'a GET of our own is on its way';
}

/** @param hold opens the dialog for a circuit */
export function createCircuitRows(body, hold) {
  return keyed(
    body,
    ({ lane }) => lane,
    (first) => {
      let circuit = first;
      const mark = h('span', { 'aria-hidden': 'true' });
      const state = h('span', { class: 'word' });
      const badge = h('span', { class: 'badge' }, mark, ' ', state);
      const why = h('span', { class: 'why' });
      const button = h(
        'button',
        {
          type: 'button',
          class: 'small',
          'aria-label': `Hold ${first.lane} of ${first.environment}`,
          click: () => hold(circuit),
        },
        'Hold…',
      );
      const element = h(
        'tr',
        {},
        h('th', { scope: 'row' }, first.lane),
        h('td', {}, h('div', { class: 'now' }, badge, why)),
        h('td', { class: 'act' }, button),
      );
      return {
        element,
        show(next) {
          circuit = next;
          const effect = effectOf(next);
          badge.dataset.state = effect;
          say(mark, marks[effect]);
          say(state, wordsOf(effect));
          say(why, whyOf(next));
          why.title = next.until ?? '';
        },
      };
    },
  );
}
