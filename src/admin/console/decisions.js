/** "Why was my call refused?": everything the gateway decided about one X-Request-ID. */

import { callApi } from './connection.js';
import { byId, formatDuration, h, timeElement } from './dom.js';

export function createDecisions() {
  const results = byId('search-results');
  byId('search').addEventListener('submit', async (event) => {
    event.preventDefault();
    const id = byId('request-id').value.trim();
    results.replaceChildren(h('p', { class: 'hint' }, 'Searching…'));
    try {
      const decisions = await callApi('GET', `/decisions/${encodeURIComponent(id)}`);
      results.replaceChildren(...decisions.map(renderDecision));
    } catch ({ status, message }) {
      const text =
        status === 404
          ? `This instance has no record of ${id}: the request is too old, was sent to another instance, or never arrived.`
          : message;
      results.replaceChildren(h('p', {}, text));
    }
  });
}

function renderDecision({
  at,
  operation,
  client,
  tenant,
  environment,
  status,
  error,
  why,
  servedFrom,
  durationMs,
  steps = [],
}) {
  const refused = error !== undefined && error !== null;
  const facts = {
    Operation: operation,
    Client: client,
    Tenant: tenant,
    Environment: environment,
    'Served from': servedFrom,
  };
  return h(
    'article',
    { class: 'decision', 'data-level': refused ? 'bad' : 'good' },
    h(
      'h3',
      {},
      `${status} ${error ?? 'completed'}`,
      ' ',
      h('span', { class: 'aside' }, timeElement(at), ` · ${formatDuration(durationMs)}`),
    ),
    why && h('p', {}, why),
    h(
      'dl',
      { class: 'facts' },
      ...Object.entries(facts)
        .filter(([, value]) => value)
        .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, String(value)))),
    ),
    (steps.length > 0 && h('ol', { class: 'steps' }, ...steps.map(renderStep))) || undefined,
  );
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
