/** Links from the console to Grafana and to the traces, from the templates in `admin.links`. */

import { h } from './dom.js';

/**
 * @param template a URL with placeholders such as `{environment}`; `undefined` or `null` if none is configured
 * @param values of the placeholders; one without a value becomes empty
 * @returns a link that opens in a new tab, or `undefined`
 */
export function externalLink(label, template, values = {}) {
  if (!template) return undefined;
  const url = template.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''));
  return newTabLink(label, url);
}

export const newTabLink = (label, href) =>
  h(
    'a',
    { class: 'external', href, target: '_blank', rel: 'noreferrer' },
    label,
    h('span', { class: 'visually-hidden' }, ' (opens in a new tab)'),
  );
