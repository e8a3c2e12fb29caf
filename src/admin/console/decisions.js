/** "Why was my call refused?": everything the gateway decided about one X-Request-ID. */

import { ask } from './connection.js';
import { byId, clock, duration, h } from './dom.js';

export function createDecisions() {
  const found = byId('found');
  byId('search').addEventListener('submit', async (event) => {
    event.preventDefault();
    const id = byId('request-id').value.trim();
    found.replaceChildren(h('p', { class: 'hint' }, 'Searching…'));
    try {
      const decisions = await ask('GET', `/decisions/${encodeURIComponent(id)}`);
      found.replaceChildren(...decisions.map(decisionOf));
    } catch ({ status, message }) {
      const text =
        status === 404
          ? `This instance remembers nothing of ${id}: it came too long ago, to another instance, or never.`
          : message;
      found.replaceChildren(h('p', {}, text));
    }
  });
}

function decisionOf({
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
      `${status} ${error ?? 'answered'}`,
      ' ',
      h('span', { class: 'aside' }, clock(at), ` · ${duration(durationMs)}`),
    ),
    why && h('p', { class: 'why' }, why),
    h(
      'dl',
      { class: 'facts' },
      ...Object.entries(facts)
        .filter(([, value]) => value)
        .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, String(value)))),
    ),
    (steps.length > 0 && h('ol', { class: 'steps' }, ...steps.map(stepOf))) || undefined,
  );
}

const stepOf = ({ afterMs, what, ...more }) =>
  h(
    'li',
    {},
    h('span', { class: 'after' }, `+${duration(afterMs)}`),
    ` ${what} `,
    h(
      'span',
      { class: 'hint' },
      Object.entries(more)
        .map(([name, value]) => `${name} ${textOf(value)}`)
        .join(' · '),
    ),
  );

const textOf = (value) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
