/** The dialog that switches the active environment: runs the pre-flight, and for production asks for the name. */

import { callApi } from './connection.js';
import { openFormDialog, reasonField, showNotice } from './dialogs.js';
import { byId, formatCount, formatTime, h } from './dom.js';
import { confirmationField, environmentBadge, isProduction } from './production.js';

const stepLabels = {
  dns: 'DNS',
  tcp: 'TCP connection',
  tls: 'TLS handshake',
  certificate: 'Certificate',
  answer: 'HTTP response',
};

export function openSwitch(environment, { active, environments }) {
  const url = environments.find(({ name }) => name === environment)?.baseUrl;
  const report = h('div', { class: 'report', role: 'status' }, h('p', {}, 'Running the pre-flight check…'));
  const force = createForceField();
  const acknowledge = createAcknowledgeField();
  const differences = h('div', { class: 'report', role: 'status', hidden: true });
  const dialog = openFormDialog({
    title: `Switch to ${environment}?`,
    button: `Switch to ${environment}`,
    body: [
      h(
        'p',
        { class: 'change' },
        active === null ? 'none' : environmentBadge(active),
        h('span', { 'aria-hidden': 'true' }, ' → '),
        h('span', { class: 'visually-hidden' }, 'to'),
        environmentBadge(environment),
      ),
      h('p', { class: 'hint' }, url),
      h(
        'p',
        {},
        'New payments will go to this environment; existing payments stay where they were created. All instances switch within a second.',
      ),
      report,
      force,
      differences,
      acknowledge,
      reasonField(),
      ...(isProduction(environment) ? [confirmationField(environment)] : []),
    ],
    async send({ reason, confirm: name, force: forced, acknowledge: acknowledged }) {
      try {
        return await callApi('PUT', '/environments/active', {
          environment,
          reason,
          ...(name && { confirm: name }),
          force: forced === 'yes',
          // A gateway of an earlier release does not know it.
          ...(acknowledged === 'yes' && { acknowledgeDifferences: true }),
        });
      } catch (thrown) {
        if (thrown.body?.preflight) showReport({ ...thrown.body.preflight, contract: thrown.body.contract });
        (force.hidden ? acknowledge : force).querySelector('input:enabled')?.focus();
        throw thrown;
      }
    },
    done({ version }) {
      showNotice(`Switched to ${environment} at ${formatTime(Date.now())} (version ${version}).`);
      return byId(`environment-${environment}`);
    },
  });

  function showReport({ ok, steps, contract }) {
    report.dataset.level = ok ? 'good' : 'bad';
    report.replaceChildren(
      h('p', {}, h('strong', {}, ok ? 'Pre-flight check passed.' : 'Pre-flight check failed.')),
      h('ul', {}, ...steps.map(createStep)),
    );
    showChoice(force, !ok);
    const mustAcknowledge = contract?.differences.some((difference) => difference.mustAcknowledge) ?? false;
    showChoice(acknowledge, mustAcknowledge);
    differences.hidden = !contract;
    if (!contract) return;
    differences.dataset.level = mustAcknowledge ? 'warn' : '';
    differences.replaceChildren(...describeComparison(contract));
  }

  callApi('POST', `/environments/${encodeURIComponent(environment)}/preflight`).then(
    showReport,
    ({ message }) => report.replaceChildren(h('p', {}, `No pre-flight check: ${message}`)),
  );
  return dialog;
}

/** Shows or hides a field with a checkbox. A hidden one is not sent. */
function showChoice(field, isShown) {
  field.hidden = !isShown;
  field.querySelector('input').disabled = !isShown;
}

function createForceField() {
  const checkbox = h('input', { type: 'checkbox', name: 'force', value: 'yes', disabled: true });
  return h(
    'p',
    { class: 'field forced', hidden: true },
    h('label', { class: 'choice' }, checkbox, ' Switch although the pre-flight check failed'),
    h(
      'span',
      { class: 'hint' },
      'New payments may fail until the bank recovers. The audit log records the switch as “forced”.',
    ),
  );
}

function createAcknowledgeField() {
  const checkbox = h('input', { type: 'checkbox', name: 'acknowledge', value: 'yes', disabled: true });
  return h(
    'p',
    { class: 'field forced', hidden: true },
    h(
      'label',
      { class: 'choice' },
      checkbox,
      ' Switch although requests would be refused or executed in another way',
    ),
    h(
      'span',
      { class: 'hint' },
      'The clients above must change their requests. A switch back within an hour does not ask.',
    ),
  );
}

/** How many differences the dialog lists; `penstock contract compare` lists all. */
const maxDifferences = 10;

/** Missing data must not read as compatible. */
function describeComparison({ from, to, requests, since, judgedSince, skipped, differences }) {
  if (judgedSince === null)
    return [
      h('p', {}, h('strong', {}, 'Nothing is known about differences.')),
      h('p', {}, `No request in ${from} was judged by the contract of ${to}.`),
    ];
  const left = skipped
    .map(({ reason, count }) => ` ${count.toLocaleString()} not judged (${reason}).`)
    .join('');
  const before = judgedSince > since ? ` Not judged before ${formatTime(judgedSince)}.` : '';
  const judged = formatCount(requests, `request in ${from} was`, `requests in ${from} were`);
  const found =
    differences.length === 0
      ? 'No difference was found in the requests that were judged.'
      : `${formatCount(differences.length, 'difference')} found in requests.`;
  const shown = differences.slice(0, maxDifferences);
  const rest = differences.length - shown.length;
  return [
    h('p', {}, h('strong', {}, found)),
    h('p', {}, `${judged} judged by the contract of ${to}.${before}${left}`),
    h('ul', {}, ...shown.map((difference) => createDifference(difference, from))),
    rest > 0 &&
      h('p', {}, `${formatCount(rest, 'more difference')}: penstock contract compare ${from} ${to}`),
  ].filter(Boolean);
}

function createDifference({ operation, path, rule, effect, count, clients, inBoth, mustAcknowledge }, from) {
  const mark = mustAcknowledge
    ? h('span', { class: 'mark', role: 'img', 'aria-label': 'to be acknowledged' }, '▲')
    : h('span', { class: 'mark', role: 'img', 'aria-label': 'note' }, 'i');
  const by = clients.map(({ client }) => client).join(', ');
  return h(
    'li',
    { 'data-level': mustAcknowledge ? 'warn' : 'note' },
    mark,
    h(
      'span',
      {},
      `${effect}: `,
      h('code', {}, path),
      ' ',
      h(
        'span',
        { class: 'hint' },
        `${rule}, ${operation}${inBoth ? ` (also in ${from})` : ''}, ${formatCount(count, 'time')} by ${by}`,
      ),
    ),
  );
}

function createStep({ step, ok, detail, remark }) {
  const mark = h(
    'span',
    { class: 'mark', role: 'img', 'aria-label': ok ? 'passed' : 'failed' },
    ok ? '✓' : '✕',
  );
  return h(
    'li',
    { 'data-level': ok ? 'good' : 'bad' },
    mark,
    h('span', { class: 'step' }, stepLabels[step] ?? step),
    h('span', { class: 'detail' }, remark ? `${detail}. ${remark}` : detail),
  );
}
