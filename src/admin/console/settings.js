/** What is asked for rarely: forgetting cached statuses, the instance, the configuration in effect. */

import { ask } from './connection.js';
import { byId, clock, h, say } from './dom.js';

/** @returns shows the instance, and offers the environments */
export function createSettings() {
  byId('forget').addEventListener('submit', async (event) => {
    event.preventDefault();
    const { environment, payment } = Object.fromEntries(new FormData(event.target));
    const query = new URLSearchParams({
      ...(environment && { environment }),
      ...(payment.trim() && { payment: payment.trim() }),
    });
    const place = byId('forgotten');
    try {
      await ask('DELETE', `/status-cache?${query}`);
      place.dataset.level = 'good';
      say(place, payment.trim() ? `Forgotten: ${payment.trim()}.` : 'Every status is forgotten.');
    } catch ({ message }) {
      place.dataset.level = 'bad';
      say(place, message);
    }
  });

  byId('configuration').addEventListener('toggle', async ({ target }) => {
    if (!target.open) return;
    const text = await ask('GET', '/config').then(linesOf, ({ message }) => message);
    say(byId('settings'), text);
  });

  return ({ instance, environments }) => {
    const { host, pid, startedAt, node } = instance;
    const facts = { Host: host, Process: pid, Node: node };
    byId('instance').replaceChildren(
      ...Object.entries(facts).map(([name, value]) =>
        h('div', {}, h('dt', {}, name), h('dd', {}, String(value))),
      ),
      h('div', {}, h('dt', {}, 'Since'), h('dd', {}, clock(startedAt))),
    );
    const offered = environments.map(({ name }) => h('option', { value: name }, name));
    byId('forget-environment').replaceChildren(h('option', { value: '' }, 'every one'), ...offered);
  };
}

/** Like YAML, to be read by people. */
function linesOf(value, depth = 0) {
  const indent = '  '.repeat(depth);
  return Object.entries(value)
    .map(([name, one]) =>
      typeof one === 'object' && one !== null && Object.keys(one).length > 0
        ? `${indent}${name}:\n${linesOf(one, depth + 1)}`
        : `${indent}${name}: ${typeof one === 'object' ? JSON.stringify(one) : one}`,
    )
    .join('\n');
}
