/** The section "Maintenance": purging cached statuses, facts about the instance, the configuration in effect. */

import { callApi, readText } from './connection.js';
import { byId, h, setText, timeElement } from './dom.js';
import { filledFields } from './filled-fields.js';
import { createPanel } from './panel.js';

/** @returns `configuration`, a panel that reads while it is open; `render(state)`: the instance, and the environments to choose from */
export function createSettings() {
  byId('purge').addEventListener('submit', async (event) => {
    event.preventDefault();
    const selection = filledFields(event.target.elements);
    const { environment, payment } = selection;
    const all = environment ? `All cached statuses of ${environment}` : 'All cached statuses';
    const result = byId('purge-result');
    try {
      await callApi('DELETE', `/status-cache?${new URLSearchParams(selection)}`);
      result.dataset.level = 'good';
      setText(result, payment ? `Purged: ${payment}.` : `${all} purged.`);
    } catch ({ message }) {
      result.dataset.level = 'bad';
      setText(result, message);
    }
  });

  const configuration = createPanel({
    section: 'configuration',
    name: 'The configuration',
    everyMs: 30_000,
    read: () => readText('/config', 'application/yaml'),
    render: (text) => setText(byId('settings'), text),
  });
  const details = byId('configuration-details');
  details.addEventListener('toggle', () => (details.open ? configuration.start() : configuration.stop()));

  return {
    configuration,
    render({ instance, environments }) {
      const { host, pid, startedAt, node } = instance;
      const facts = {
        Host: host,
        'Process id': String(pid),
        'Node.js': node,
        Started: timeElement(startedAt),
      };
      byId('instance').replaceChildren(
        ...Object.entries(facts).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
      );
      const options = environments.map(({ name }) => h('option', { value: name }, name));
      const choice = byId('purge-environment');
      const chosen = choice.value;
      choice.replaceChildren(h('option', { value: '' }, 'all'), ...options);
      // The environments may change between the choice of the operator and the purge.
      choice.value = environments.some(({ name }) => name === chosen) ? chosen : '';
    },
  };
}
