/** One request in the results of a search: its outcome, the reason, and the decisions of the gateway step by step. */

import { formatDuration, h, timeElement } from './dom.js';
import { externalLink } from './external-links.js';
import { paymentLink } from './payment-link.js';
import { environmentBadge } from './production.js';

/**
 * @param record as in `GET /api/decisions` and `GET /api/search`. @param isOpen whether the steps are visible at first
 * @param links the templates of `admin.links`
 */
export function renderRequest(record, isOpen, links) {
  const {
    at,
    operation,
    paymentId,
    client,
    tenant,
    environment,
    status,
    bankError,
    error,
    why,
    durationMs,
    steps = [],
  } = record;
  const facts = {
    Operation: operation,
    Payment: paymentId && environment && paymentLink(environment, paymentId),
    Client: client,
    Tenant: tenant,
    Environment: environment && environmentBadge(environment),
    'Served from': record.servedFrom,
    Instance: record.instance,
    'X-Request-ID': record.xRequestId && h('span', { class: 'id' }, record.xRequestId),
  };
  const duration = durationMs === null || durationMs === undefined ? '' : ` · ${formatDuration(durationMs)}`;
  const title = h(
    'h3',
    {},
    status === null
      ? 'Still running'
      : `${status} ${error ?? bankError ?? (status < 400 ? 'completed' : 'of the bank')}`,
    ' ',
    h('span', { class: 'aside' }, timeElement(at), duration),
  );
  const list = h(
    'dl',
    { class: 'facts' },
    ...Object.entries(facts)
      .filter(([, value]) => value)
      .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
  return h(
    'article',
    { class: 'decision', 'data-level': levelOf(status) },
    title,
    why && h('p', {}, why),
    list,
    externalLink('Traces', links?.traces, { xRequestId: record.xRequestId, environment }),
    steps.length === 0
      ? undefined
      : h(
          'details',
          { open: isOpen },
          h('summary', {}, `${steps.length} steps`),
          h('ol', { class: 'steps' }, ...steps.map(renderStep)),
        ),
  );
}

/** An error of 4xx is the caller's, such as a 404. */
function levelOf(status) {
  if (status >= 500) return 'bad';
  return status >= 400 ? 'warn' : 'good';
}

const renderStep = ({ afterMs, what, ...attributes }) =>
  h(
    'li',
    {},
    h('span', { class: 'elapsed' }, `+${formatDuration(afterMs)}`),
    ` ${what} `,
    h(
      'span',
      { class: 'hint' },
      Object.entries(attributes)
        .map(([name, value]) => `${name} ${textOf(value)}`)
        .join(' · '),
    ),
  );

const textOf = (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
