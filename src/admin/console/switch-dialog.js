/** The dialog that switches the active environment: runs the pre-flight, and for production asks for the name. */

import { callApi } from './connection.js';
import { openFormDialog, reasonField, showNotice } from './dialogs.js';
import { byId, formatTime, h } from './dom.js';
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
      reasonField(),
      ...(isProduction(environment) ? [confirmationField(environment)] : []),
    ],
    async send({ reason, confirm: name, force: forced }) {
      try {
        return await callApi('PUT', '/environments/active', {
          environment,
          reason,
          ...(name && { confirm: name }),
          force: forced === 'yes',
        });
      } catch (thrown) {
        if (thrown.body?.preflight) showReport(thrown.body.preflight);
        throw thrown;
      }
    },
    done({ version }) {
      showNotice(`Switched to ${environment} at ${formatTime(Date.now())} (version ${version}).`);
      return byId(`environment-${environment}`);
    },
  });

  function showReport({ ok, steps }) {
    report.dataset.level = ok ? 'good' : 'bad';
    report.replaceChildren(
      h('p', {}, h('strong', {}, ok ? 'Pre-flight check passed.' : 'Pre-flight check failed.')),
      h('ul', {}, ...steps.map(createStep)),
    );
    force.hidden = ok;
  }

  callApi('POST', `/environments/${encodeURIComponent(environment)}/preflight`).then(
    showReport,
    ({ message }) => report.replaceChildren(h('p', {}, `No pre-flight check: ${message}`)),
  );
  return dialog;
}

function createForceField() {
  const checkbox = h('input', { type: 'checkbox', name: 'force', value: 'yes' });
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
    ` ${stepLabels[step] ?? step}`,
    h('span', { class: 'detail' }, remark ? `${detail}. ${remark}` : detail),
  );
}
