/** What every part of the page is made with. Text is text: nothing that came from a bank or a TPP is ever read as markup. */

const svgNames = new Set(['svg', 'path', 'line', 'rect', 'g']);

/** An element; functions among the attributes listen, `undefined` and `false` are left out, `true` stands alone. */
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

/** Leaves alone what says so already: a screen reader and a selection keep their place. */
export function say(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

/** Keeps the elements of items that stay, so that the focus stays too. @param create gives `{ element, show(item) }` */
export function keyed(parent, keyOf, create) {
  const shown = new Map();
  return (items) => {
    const keys = new Set(items.map(keyOf));
    for (const [key, { element }] of shown) {
      if (keys.has(key)) continue;
      element.remove();
      shown.delete(key);
    }
    items.forEach((item, index) => {
      const key = keyOf(item);
      const part = shown.get(key) ?? create(item);
      shown.set(key, part);
      part.show(item);
      if (parent.children[index] !== part.element)
        parent.insertBefore(part.element, parent.children[index] ?? null);
    });
  };
}

const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const withDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** In the viewer's zone; the date only where it is not today. */
export function clockText(at) {
  const date = new Date(at);
  return (date.toDateString() === new Date().toDateString() ? timeOnly : withDate).format(date);
}

/** The same as an element that has the full time in its title. */
export const clock = (at) => {
  const iso = new Date(at).toISOString();
  return h('time', { datetime: iso, title: iso }, clockText(at));
};

/** `1 payment`, `2 payments`. */
export const count = (number, one, many = `${one}s`) =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

/** `350 ms`, `1.2 s`. */
export const duration = (ms) =>
  ms < 1_000
    ? `${Math.round(ms)} ms`
    : `${(ms / 1_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} s`;
