/** The circuits of one environment: a row per lane with the state, its reason, and the time of its end or next probe. */

import { formatTime, h, keyedList, setText } from './dom.js';

const symbols = {
  closed: '●',
  'half-open': '◐',
  probation: '◐',
  open: '■',
  'held-open': '■',
  'held-closed': '◆',
};
const labels = {
  closed: 'closed',
  'half-open': 'half-open',
  probation: 'on probation',
  open: 'open',
  'held-open': 'held open',
  'held-closed': 'held closed',
};

/** The state in effect: an operator's hold takes precedence over the measured state. */
export const effectiveState = ({ state, hold }) => (hold ? `held-${hold}` : state);

/** The text for an effective state. */
export const stateLabel = (state) => labels[state] ?? state;

/** The tenants whose state is not that of the lane, such as `shop: open, rival: on probation`. */
export const tenantExceptions = ({ state, tenants }) =>
  tenants
    .filter((one) => one.state !== state)
    .map((one) => `${one.tenant}: ${stateLabel(one.state)}`)
    .join(', ');

function explain(circuit) {
  const exceptions = circuit.hold ? '' : tenantExceptions(circuit);
  return [
    `${explainState(circuit)}${exceptions && `; except for ${exceptions}`}`,
    ...firstCause(circuit),
    ...otherInstances(circuit),
  ].join('. ');
}

/** The call that failed first; `reason` may be that of a later failed probe. */
function firstCause({ cause }) {
  if (!cause) return [];
  const { at, operation, tenant, why, count, calls } = cause;
  return [
    `First cause, at ${formatTime(at)}: ${operation} of ${tenant}, ${why.replace(/\.$/, '')}; ${count} of ${calls} calls had failed when it opened`,
  ];
}

/** Each instance measures its circuits by itself; a hold applies to all. */
function otherInstances({ hold, elsewhere = [] }) {
  if (hold || elsewhere.length === 0) return [];
  return [
    `On other instances: ${elsewhere.map(({ name, state }) => `${name} ${stateLabel(state)}`).join(', ')}`,
  ];
}

function explainState({ state, hold, until, reason }) {
  const at = until ? formatTime(until) : '';
  if (hold) return `until ${at}: ${reason}`;
  if (state === 'closed') return 'calls are sent';
  if (state === 'open') return `${reason}; next probe at ${at}`;
  if (state === 'probation') return 'one payment at a time until one succeeds';
  return 'probing the bank';
}

/** @param actions `openHold(circuit)`, `showRequest(xRequestId)`. @returns a function that renders the given circuits */
export const createCircuitRows = (body, actions) =>
  keyedList(
    body,
    ({ lane }) => lane,
    (circuit) => createRow(circuit, actions),
  );

function createRow(first, { openHold, showRequest }) {
  let circuit = first;
  const symbol = h('span', { 'aria-hidden': 'true' });
  const label = h('span');
  const badge = h('span', { class: 'badge' }, symbol, ' ', label);
  const explanation = h('span', { class: 'explanation' });
  const hold = h(
    'button',
    {
      type: 'button',
      class: 'small',
      'data-operate': true,
      'aria-label': `Hold ${first.lane} of ${first.environment}`,
      click: () => openHold(circuit),
    },
    'Hold…',
  );
  const explainCause = h(
    'button',
    {
      type: 'button',
      class: 'small',
      hidden: true,
      'aria-label': `Why? Explain the first cause of ${first.lane} of ${first.environment}`,
      click: () => showRequest(circuit.cause.xRequestId),
    },
    'Why?',
  );
  const element = h(
    'tr',
    {},
    h('th', { scope: 'row' }, first.lane),
    h('td', {}, h('div', { class: 'state' }, badge, explanation)),
    h('td', { class: 'actions' }, explainCause, ' ', hold),
  );
  return {
    element,
    update(next) {
      circuit = next;
      const state = effectiveState(next);
      badge.dataset.state = state;
      setText(symbol, symbols[state]);
      setText(label, stateLabel(state));
      setText(explanation, explain(next));
      explanation.title = next.until ?? '';
      explainCause.hidden = !next.cause;
    },
  };
}
