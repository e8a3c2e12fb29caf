/**
 * Content models of XML elements, as in XML Schema: their children with order and number, and their texts. A document is checked
 * while it is parsed. An element without a model may contain anything.
 */

import type { DeviationList, Level, Rule } from './deviation.ts';

export type ContentModel = Children | Text;

interface Children {
  readonly children: ReadonlyMap<string, Child>;
  /** Positions that a document must have, as bits. */
  readonly required: number;
  readonly requirements: readonly Requirement[];
}

interface Requirement {
  readonly bit: number;
  /** Of a choice, the first one. */
  readonly name: string;
  readonly level: Level;
}

interface Child {
  /** In paths. */
  readonly name: string;
  /** In the sequence. The alternatives of a choice share one. */
  readonly position: number;
  readonly isRepeatable: boolean;
  readonly model: ContentModel | undefined;
}

interface Text {
  /** In Unicode characters; the text must not be empty. `undefined` if the length is not checked here. */
  readonly maxLength: number | undefined;
  readonly format: Format | undefined;
}

interface Format {
  readonly rule: Rule;
  /** Whether white space around the value has no meaning, as in numbers, times and truth values. */
  readonly collapses: boolean;
  readonly isFine: (value: string) => boolean;
}

interface Particle {
  readonly model: ContentModel | undefined;
  readonly isRepeatable: boolean;
  /** How harmful it is that the element is missing; `undefined` if it is optional. */
  readonly ifMissing: Level | undefined;
}

export const required = (model?: ContentModel, ifMissing: Level = 'harmful'): Particle => ({
  model,
  isRepeatable: false,
  ifMissing,
});
export const optional = (model?: ContentModel): Particle => ({
  model,
  isRepeatable: false,
  ifMissing: undefined,
});
export const repeated = (model?: ContentModel): Particle => ({
  model,
  isRepeatable: true,
  ifMissing: undefined,
});
export const oneOrMore = (model: ContentModel): Particle => ({
  model,
  isRepeatable: true,
  ifMissing: 'harmful',
});

/** At most 31 elements in this order. An element that is `undefined` does not exist in the version. */
export function sequence(particles: Readonly<Record<string, Particle | undefined>>): ContentModel {
  const children: [string, Child][] = [];
  const requirements: Requirement[] = [];
  for (const [position, [element, particle]] of Object.entries(particles).entries()) {
    if (!particle) continue;
    const { model, isRepeatable, ifMissing } = particle;
    const name = nameInPaths(element);
    children.push([element, { name, position, isRepeatable, model }]);
    if (ifMissing) requirements.push({ bit: 1 << position, name, level: ifMissing });
  }
  return childrenOf(children, requirements);
}

/** One of these elements. */
export function choice(alternatives: Readonly<Record<string, ContentModel | undefined>>): ContentModel {
  const children = Object.entries(alternatives).map(([name, model]): [string, Child] => [
    name,
    { name, position: 0, isRepeatable: false, model },
  ]);
  const [first = ''] = Object.keys(alternatives);
  return childrenOf(children, [{ bit: 1, name: first, level: 'harmful' }]);
}

function childrenOf(
  children: readonly (readonly [string, Child])[],
  requirements: readonly Requirement[],
): Children {
  return {
    children: new Map(children),
    required: requirements.reduce((bits, { bit }) => bits | bit, 0),
    requirements,
  };
}

/** In a path, a dot would look like a part of a version number. */
const nameInPaths = (element: string) => element.replaceAll('.', '-');

/** A text of one character or more. @param maxLength in characters */
export const text = (maxLength: number): ContentModel => ({ maxLength, format: undefined });

/** A text that is checked elsewhere. */
export const anyText: ContentModel = { maxLength: undefined, format: undefined };

export const code = (...codes: readonly string[]): ContentModel =>
  formatted('enum', false, (value) => codes.includes(value));

/** @param pattern anchored, and linear */
export const matching = (pattern: RegExp): ContentModel =>
  formatted('pattern', false, (value) => pattern.test(value));

/** A type in which white space around the value has no meaning. */
export const collapsed = (rule: Rule, isFine: (value: string) => boolean): ContentModel =>
  formatted(rule, true, isFine);

const formatted = (rule: Rule, collapses: boolean, isFine: (value: string) => boolean): ContentModel => ({
  maxLength: undefined,
  format: { rule, collapses, isFine },
});

/** An element that has begun and not ended. */
interface Frame {
  /** As in the model; `*` if it has none. */
  name: string;
  model: ContentModel | undefined;
  /** Of the last child. */
  position: number;
  /** Positions of the children so far, as bits. */
  seen: number;
  hasChildren: boolean;
}

/** Checks a document against the model of its root element. The caller bounds the depth. */
export class StructureCheck {
  readonly #model: ContentModel;
  readonly #root: string;
  readonly #isExact: boolean;
  readonly #list: DeviationList;
  /** Frames are reused: a document of 1 MiB has 100,000 elements. */
  readonly #frames: Frame[] = [];
  #depth = 0;
  #reports = 0;

  /**
   * @param root path of the document in the message
   * @param isExact whether the model is that of the document's version; if not, no deviation is harmful
   */
  constructor(model: ContentModel, root: string, isExact: boolean, list: DeviationList) {
    this.#model = model;
    this.#root = root;
    this.#isExact = isExact;
    this.#list = list;
  }

  /**
   * @param name without prefix; `undefined` if the element belongs to another namespace
   * @param textBefore between the tag before this one and this one
   */
  open(name: string | undefined, textBefore: string): void {
    const parent = this.#frames[this.#depth - 1];
    if (!parent) {
      this.#push('Document', this.#model);
      return;
    }
    parent.hasChildren = true;
    const { model } = parent;
    if (!model) {
      this.#push('*', undefined);
      return;
    }
    const child = 'children' in model && name !== undefined ? model.children.get(name) : undefined;
    if ('children' in model && isMixed(textBefore)) this.#report('type', parent.name);
    if (child) this.#checkOrder(parent, child);
    else this.#report('unknown', `${parent.name}/*`);
    this.#push(child?.name ?? '*', child?.model);
  }

  /** @param textBefore since the last tag: the whole text if the element has no children */
  close(textBefore: string): void {
    const frame = this.#frames[--this.#depth];
    if (!frame?.model) return;
    if ('children' in frame.model) {
      if (isMixed(textBefore)) this.#report('type', frame.name);
      this.#checkMissing(frame, frame.model);
      return;
    }
    if (!frame.hasChildren) this.#checkText(frame.name, frame.model, textBefore);
  }

  /** The name of an open element in its model. @param up 0 is the innermost one */
  nameOf(up: number): string | undefined {
    return this.#frames[this.#depth - 1 - up]?.name;
  }

  #push(name: string, model: ContentModel | undefined): void {
    const frame = this.#frames[this.#depth++];
    if (!frame) {
      this.#frames.push({ name, model, position: -1, seen: 0, hasChildren: false });
      return;
    }
    frame.name = name;
    frame.model = model;
    frame.position = -1;
    frame.seen = 0;
    frame.hasChildren = false;
  }

  #checkOrder(parent: Frame, { name, position, isRepeatable }: Child): void {
    const bit = 1 << position;
    if ((parent.seen & bit) !== 0 && !isRepeatable) this.#report('repeated', `${parent.name}/${name}`);
    else if (position < parent.position) this.#report('order', `${parent.name}/${name}`);
    else parent.position = position;
    parent.seen |= bit;
  }

  #checkMissing({ name, seen }: Frame, model: Children): void {
    if ((model.required & ~seen) === 0) return;
    for (const requirement of model.requirements) {
      if ((requirement.bit & seen) === 0)
        this.#report('required', `${name}/${requirement.name}`, requirement.level);
    }
  }

  #checkText(name: string, { maxLength, format }: Text, value: string): void {
    if (maxLength !== undefined) {
      if (value === '') this.#report('empty', name);
      else if (value.length > maxLength && charactersIn(value) > maxLength) this.#report('max-length', name);
    }
    if (format && !format.isFine(format.collapses ? collapse(value) : value)) this.#report(format.rule, name);
  }

  #report(rule: Rule, path: string, level: Level = 'harmful'): void {
    if (this.#list.isFull) return;
    if (!this.#isExact && ++this.#reports > maxInexactReports) return;
    const given = level === 'harmful' && !this.#isExact ? 'notable' : level;
    this.#list.add(given, rule, `${this.#root}/${path}`, given === 'harmful' ? 'refused' : 'may-be-refused');
  }
}

/** How many deviations are reported if the model is not exact: none of them is harmful. */
const maxInexactReports = 1_000;

const isMixed = (textBefore: string) => textBefore !== '' && /[^ \t\r\n]/.test(textBefore);

function charactersIn(value: string): number {
  let count = 0;
  for (const _character of value) count++;
  return count;
}

/** Without white space around it, in linear time; `trim` removes other characters as well. */
export function collapse(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value.charCodeAt(start))) start++;
  while (end > start && isSpace(value.charCodeAt(end - 1))) end--;
  return end - start === value.length ? value : value.slice(start, end);
}

const isSpace = (unit: number) => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
