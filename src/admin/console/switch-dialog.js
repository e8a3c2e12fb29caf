/** The switch: tried out before anything is asked, confirmed by name where money moves, forced only by a decision of its own. */

import { ask } from './connection.js';
import { choice, field, notify, openOrder, reasonField } from './dialogs.js';
import { byId, clockText, h } from './dom.js';

const steps = {
  dns: 'Name',
  tcp: 'Connection',
  tls: 'Encryption',
  certificate: 'Certificate',
  answer: 'Answer',
};

/** As in the gateway: a slip of the finger must not be enough. */
const confirmed = 'production';

export function openSwitch(environment, { active, operator, environments }) {
  const url = environments.find(({ name }) => name === environment)?.baseUrl;
  const report = h('div', { class: 'report', role: 'status' }, h('p', {}, 'Trying the bank out…'));
  const forced = h(
    'p',
    { class: 'field forced', hidden: true },
    h(
      'label',
      { class: 'choice' },
      h('input', { type: 'checkbox', name: 'force', value: 'yes' }),
      ' Switch although the bank does not answer as it should',
    ),
    h(
      'span',
      { class: 'hint' },
      'New payments may fail there until it does. The audit log will say “forced”.',
    ),
  );
  const confirm = h('input', {
    id: 'confirm',
    name: 'confirm',
    required: true,
    pattern: environment,
    autocomplete: 'off',
    spellcheck: 'false',
    title: `the word ${environment}`,
  });

  const dialog = openOrder({
    title: `Send new payments to ${environment}?`,
    button: `Switch to ${environment}`,
    role: operator.role,
    body: [
      h(
        'p',
        { class: 'change' },
        h('span', {}, active ?? 'nowhere'),
        h('span', { 'aria-hidden': 'true' }, ' → '),
        h('span', { class: 'unseen' }, 'to'),
        h('strong', {}, environment),
      ),
      h('p', { class: 'hint url' }, url),
      h('p', {}, 'Payments that exist stay where they were born. All instances follow within a second.'),
      report,
      forced,
      reasonField(),
      ...(environment === confirmed ? [field(`Type ${environment} to confirm`, confirm)] : []),
    ],
    async send({ reason, confirm: name, force }) {
      try {
        return await ask('PUT', '/environments/active', {
          environment,
          reason,
          ...(name && { confirm: name }),
          force: force === 'yes',
        });
      } catch (thrown) {
        if (thrown.answer?.preflight) show(thrown.answer.preflight);
        throw thrown;
      }
    },
    done({ version }) {
      notify(`New payments go to ${environment} since ${clockText(Date.now())} (version ${version}).`);
      return byId(`environment-${environment}`);
    },
  });

  function show({ ok, steps: taken }) {
    report.dataset.level = ok ? 'good' : 'bad';
    report.replaceChildren(
      h('p', {}, h('strong', {}, ok ? 'The bank is ready.' : 'The pre-flight failed.')),
      h(
        'ul',
        {},
        ...taken.map(({ step, ok: well, detail }) =>
          h(
            'li',
            { 'data-level': well ? 'good' : 'bad' },
            h(
              'span',
              { class: 'mark', role: 'img', 'aria-label': well ? 'passed' : 'failed' },
              well ? '✓' : '✕',
            ),
            ` ${steps[step] ?? step}`,
            h('span', { class: 'detail' }, detail),
          ),
        ),
      ),
    );
    forced.hidden = ok;
  }

  ask('POST', `/environments/${encodeURIComponent(environment)}/preflight`).then(show, ({ message }) => {
    report.replaceChildren(h('p', {}, `Not tried out: ${message}`));
  });
  return dialog;
}

/** Holds a circuit, or lets it go as it measures. */
export function openHold({ environment, lane, hold }, { operator }) {
  const span = h(
    'select',
    { id: 'for', name: 'for' },
    ...[
      ['10min', '10 minutes'],
      ['30min', '30 minutes'],
      ['1h', '1 hour'],
      ['4h', '4 hours'],
      ['24h', '24 hours'],
    ].map(([value, label]) => h('option', { value }, label)),
  );
  return openOrder({
    title: `Circuit of ${lane}, ${environment}`,
    button: 'Give the order',
    role: operator.role,
    body: [
      h(
        'fieldset',
        {},
        h('legend', {}, 'What should it do?'),
        choice('hold', 'open', 'Hold open: nothing is sent to the bank'),
        choice('hold', 'closed', 'Hold closed: everything is sent, whatever the bank answers'),
        hold === null ? '' : choice('hold', 'release', 'Let it go as it measures', { checked: true }),
      ),
      field('For', span, 'Then it ends by itself. It holds on all instances.'),
      reasonField(),
    ],
    send: (order) =>
      ask('PUT', `/circuits/${encodeURIComponent(environment)}/${lane}`, {
        ...order,
        hold: order.hold === 'release' ? null : order.hold,
      }),
    done(circuit) {
      notify(
        circuit.hold
          ? `${environment}: ${lane} is held ${circuit.hold} until ${clockText(circuit.until)}.`
          : `${environment}: ${lane} goes as it measures.`,
      );
    },
  });
}
