/** Helpers that create and update elements. Text stays text: no value from a bank or a TPP is ever parsed as markup. */

const svgNames = new Set(['svg', 'rect']);

/**
 * Creates an element. Function attributes become event listeners, `undefined` and `false` are left out, `true` is an
 * empty attribute.
 */
export function h(name, attributes = {}, ...children) {
  const element = svgNames.has(name)
    ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Changes the text only if it differs, so that a screen reader and a selection keep their position. */
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

/** Like `setText`; what is between backticks becomes `code`. */
export function setTextWithCode(element, text) {
  const parts = text.split('`');
  const plain = parts.join('');
  if (element.textContent === plain) return;
  element.replaceChildren(...parts.map((part, index) => (index % 2 === 1 ? h('code', {}, part) : part)));
}

/**
 * Renders a list and reuses the elements of items that stay, so that they keep the focus.
 *
 * @param create gives `{ element, update(item) }`
 * @returns renders these items
 */
export function keyedList(parent, keyOf, create) {
  const rendered = new Map();
  return (items) => {
    const keys = new Set(items.map(keyOf));
    for (const [key, { element }] of rendered) {
      if (keys.has(key)) continue;
      element.remove();
      rendered.delete(key);
    }
    items.forEach((item, index) => {
      const key = keyOf(item);
      const part = rendered.get(key) ?? create(item);
      rendered.set(key, part);
      part.update(item);
      if (parent.children[index] !== part.element)
        parent.insertBefore(part.element, parent.children[index] ?? null);
    });
  };
}

const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const withDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** In the viewer's time zone; with the date unless it is today. */
export function formatTime(at) {
  const date = new Date(at);
  return (date.toDateString() === new Date().toDateString() ? timeOnly : withDate).format(date);
}

/** A `time` element with the full time in its title. */
export const timeElement = (at) => {
  const iso = new Date(at).toISOString();
  return h('time', { datetime: iso, title: iso }, formatTime(at));
};

/** `1 payment`, `2 payments`. */
export const formatCount = (number, singular, plural = `${singular}s`) =>
  `${number.toLocaleString()} ${number === 1 ? singular : plural}`;

/** `12 s`, `3 min`, `2 h 5 min`, `4 days`. */
export function formatAge(ms) {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return formatCount(Math.floor(hours / 24), 'day');
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
}

/** With at most one decimal. */
export const formatNumber = (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 });

/** `350 ms`, `1.2 s`. */
export const formatDuration = (ms) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${formatNumber(ms / 1_000)} s`);
