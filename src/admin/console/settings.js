/** Rarely needed: purging cached statuses, facts about the instance, the configuration in effect. */

import { callApi } from './connection.js';
import { byId, h, setText, timeElement } from './dom.js';

/** @returns renders the facts about the instance and the environments to choose from */
export function createSettings() {
  byId('purge').addEventListener('submit', async (event) => {
    event.preventDefault();
    const { environment, payment } = Object.fromEntries(new FormData(event.target));
    const query = new URLSearchParams({
      ...(environment && { environment }),
      ...(payment.trim() && { payment: payment.trim() }),
    });
    const result = byId('purge-result');
    try {
      await callApi('DELETE', `/status-cache?${query}`);
      result.dataset.level = 'good';
      setText(result, payment.trim() ? `Purged: ${payment.trim()}.` : 'All cached statuses purged.');
    } catch ({ message }) {
      result.dataset.level = 'bad';
      setText(result, message);
    }
  });

  byId('configuration').addEventListener('toggle', async ({ target }) => {
    if (!target.open) return;
    const text = await callApi('GET', '/config').then(formatSettings, ({ message }) => message);
    setText(byId('settings'), text);
  });

  return ({ instance, environments }) => {
    const { host, pid, startedAt, node } = instance;
    const facts = { Host: host, 'Process id': String(pid), 'Node.js': node, Started: timeElement(startedAt) };
    byId('instance').replaceChildren(
      ...Object.entries(facts).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    );
    const options = environments.map(({ name }) => h('option', { value: name }, name));
    byId('purge-environment').replaceChildren(h('option', { value: '' }, 'all'), ...options);
  };
}

/** Indented like YAML, for people to read. */
function formatSettings(settings, depth = 0) {
  const indent = '  '.repeat(depth);
  return Object.entries(settings)
    .map(([name, value]) => {
      if (isSection(value)) return `${indent}${name}:\n${formatSettings(value, depth + 1)}`;
      if (!Array.isArray(value)) return `${indent}${name}: ${isObject(value) ? '{}' : value}`;
      if (!value.some(isSection)) return `${indent}${name}: [${value.join(', ')}]`;
      return `${indent}${name}:\n${value.map((item) => formatItem(item, depth + 1)).join('\n')}`;
    })
    .join('\n');
}

function formatItem(item, depth) {
  const indent = '  '.repeat(depth);
  return formatSettings(item, depth + 1).replace(`${indent}  `, `${indent}- `);
}

const isObject = (value) => typeof value === 'object' && value !== null;
const isSection = (value) => isObject(value) && !Array.isArray(value) && Object.keys(value).length > 0;
