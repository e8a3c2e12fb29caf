/**
 * Compiles the contract's JSON Schemas with Ajv, and translates its errors into deviations. The only file that knows Ajv, which
 * is loaded when the first contract is prepared.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Ajv, _ as CodeTemplate, ErrorObject, FuncKeywordDefinition } from 'ajv';
import { isDate, isDateAndTime } from './dates.ts';
import type { Deviation, DeviationList, Effect, Level, Rule } from './deviation.ts';
import type { Absence, Schema } from './standard-versions.ts';

export type Definitions = Readonly<Record<string, Schema>>;

export interface Validators {
  /**
   * Adds the deviations of a value to the list.
   *
   * @param definition one of those that were prepared
   * @param root path of the value in the message, such as `body`
   */
  validate(definition: string, value: unknown, root: string, list: DeviationList): void;
  /** A path of a deviation: names that no schema has become `*`, indices `#`. */
  pathOf(root: string, segments: readonly string[]): string;
}

/** What an error of a schema means, unless the schema says so itself. */
export interface Direction {
  readonly broken: { readonly level: Level; readonly effect: Effect };
  readonly unknownField: { readonly level: Level; readonly effect: Effect };
  readonly emptyText: { readonly level: Level; readonly effect: Effect };
  /** What becomes of the level and effect that a schema states for a request. */
  readonly translate: (absence: Absence) => Absence;
}

interface Remark extends Absence {
  readonly matches: string;
}

/** Compiles one definition in each turn of the event loop. @param prepare those that messages are checked with */
export async function compileSchemas(
  definitions: Definitions,
  prepare: Readonly<Record<string, Direction>>,
): Promise<Validators> {
  const { Ajv, _ } = await import('ajv');
  const ajv = new Ajv({
    allErrors: true, // the size of the value is bounded: read-json.ts
    allowUnionTypes: true,
    messages: false,
    logger: false,
    // Less work for Ajv: the schemas are ours, and validators are as fast without the optimisations of their code.
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
    formats: { date: isDate, 'date-time': isDateAndTime },
  });
  addKeywords(ajv);
  addLengths(ajv, _);
  ajv.addSchema({ $id: 'contract', definitions: withAbsences(definitions) });
  await nextTurn();
  const names = propertyNamesIn(definitions);
  const checks = new Map<string, Check>();
  for (const name of Object.keys(definitions)) {
    const validate = ajv.getSchema(`contract#/definitions/${name}`);
    const direction = prepare[name];
    if (validate && direction) checks.set(name, { validate, direction });
    await nextTurn(); // the first ones are parts of the others
  }
  const pathOf = (root: string, segments: readonly string[]) => schemaPath(root, segments, names);
  return {
    pathOf,
    validate(definition, value, root, list) {
      const check = checks.get(definition);
      if (!check) throw new Error(`${definition} was not prepared`);
      if (check.validate(value)) return;
      for (const error of check.validate.errors ?? []) {
        list.addAll([deviationOf(error, root, names, check.direction)]);
        if (list.isFull) break;
      }
      check.validate.errors = null; // an error refers to the value
    },
  };
}

interface Check {
  readonly validate: { (value: unknown): unknown; errors?: ErrorObject[] | null };
  readonly direction: Direction;
}

function addKeywords(ajv: Ajv): void {
  ajv.addKeyword({
    keyword: 'absences',
    type: 'object',
    schemaType: 'object',
    errors: true,
    compile: (absences: Readonly<Record<string, Absence>>) => {
      const absent = new Map(Object.entries(absences));
      const check: KeywordCheck = (value) => {
        const found = Object.keys(value).filter((name) => absent.has(name));
        if (found.length === 0) return true;
        check.errors = found.map((name) => ({ keyword: 'absent', params: { name, ...absent.get(name) } }));
        return false;
      };
      return check;
    },
  });
  ajv.addKeyword({
    keyword: 'remark',
    type: 'string',
    schemaType: 'object',
    errors: true,
    compile: ({ matches, ...remark }: Remark) => {
      const pattern = new RegExp(matches, 'u');
      return failing('remark', remark, (value) => !pattern.test(value));
    },
  });
  ajv.addKeyword({
    keyword: 'characters',
    type: 'string',
    schemaType: 'string',
    errors: true,
    compile: (characters: string) => {
      const allowed = new Set(characters);
      const meaning = { rule: 'characters', level: 'harmful', effect: 'refused' } as const;
      return failing('characters', meaning, (value) => Array.from(value).every((one) => allowed.has(one)));
    },
  });
}

/**
 * Lengths in characters. Ajv counts those of every text one by one; the length of a JavaScript string, which is at least as large,
 * almost always suffices.
 */
function addLengths(ajv: Ajv, code: typeof CodeTemplate): void {
  const length = { type: 'string', schemaType: 'number' } as const;
  ajv.removeKeyword('maxLength').addKeyword({
    ...length,
    keyword: 'maxLength',
    code(context) {
      const { gen, data, schema } = context;
      const count = gen.scopeValue('func', { ref: characterCount });
      context.fail(code`${data}.length > ${schema} && ${count}(${data}) > ${schema}`);
    },
  });
  ajv.removeKeyword('minLength').addKeyword({
    ...length,
    keyword: 'minLength', // the only one is 1
    code: (context) => context.fail(code`${context.data}.length < ${context.schema}`),
  });
}

const characterCount = (text: string) => Array.from(text).length;

/**
 * Gathers the properties with the keyword `absent` in one keyword of their object: for each property with a keyword of its own,
 * Ajv writes half a kilobyte of code.
 */
function withAbsences(node: Schema): Schema;
function withAbsences(node: unknown): unknown;
function withAbsences(node: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node;
  if (Array.isArray(node)) return node.map((item) => withAbsences(item));
  const schema = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withAbsences(value)]));
  const absences = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    typeof property === 'object' && property !== null && 'absent' in property
      ? [[name, property.absent] as const]
      : [],
  );
  if (absences.length === 0) return schema;
  const unchecked = Object.fromEntries(absences.map(([name]) => [name, {}]));
  return {
    ...schema,
    properties: { ...Object(schema.properties), ...unchecked },
    absences: Object.fromEntries(absences),
  };
}

type KeywordCheck = ReturnType<NonNullable<FuncKeywordDefinition['compile']>>;

/** A keyword that reports its own meaning. Ajv completes the error object, so that each error needs a new one. */
function failing(keyword: string, meaning: Absence, isFine: (value: string) => boolean): KeywordCheck {
  const check: KeywordCheck = (value) => {
    if (isFine(value)) return true;
    check.errors = [{ keyword, params: meaning }];
    return false;
  };
  return check;
}

function deviationOf(
  error: ErrorObject,
  root: string,
  names: ReadonlySet<string>,
  { broken, unknownField, emptyText, translate }: Direction,
): Deviation {
  const segments = error.instancePath === '' ? [] : error.instancePath.slice(1).split('/');
  const at = (...more: string[]) => schemaPath(root, [...segments, ...more], names);
  switch (error.keyword) {
    case 'required':
      return { rule: 'required', path: at(String(error.params.missingProperty)), ...broken };
    case 'additionalProperties':
      return { rule: 'unknown', path: `${at()}/*`, ...unknownField };
    case 'minLength':
      return { rule: 'empty', path: at(), ...emptyText };
    case 'absent':
      return { path: at(String(error.params.name)), ...translate(absenceIn(error)) };
    case 'remark':
    case 'characters':
      return { path: at(), ...translate(absenceIn(error)) };
    default:
      return { rule: ruleOf[error.keyword] ?? 'type', path: at(), ...broken };
  }
}

const absenceIn = ({ params }: ErrorObject): Absence => ({
  rule: params.rule,
  level: params.level,
  effect: params.effect,
});

const ruleOf: Readonly<Record<string, Rule>> = {
  type: 'type',
  pattern: 'pattern',
  format: 'format',
  enum: 'enum',
  maxLength: 'max-length',
  minItems: 'min-items',
  maxItems: 'max-items',
  uniqueItems: 'unique-items',
  minProperties: 'min-properties',
};

/** The deepest path of a schema has five names. */
const maxSegments = 6;

function schemaPath(root: string, segments: readonly string[], names: ReadonlySet<string>): string {
  let path = root;
  for (const segment of segments.slice(0, maxSegments)) path += `/${nameOf(segment, names)}`;
  return segments.length > maxSegments ? `${path}/**` : path;
}

function nameOf(segment: string, names: ReadonlySet<string>): string {
  if (/^\d+$/.test(segment)) return '#';
  return names.has(segment) ? segment : '*';
}

function propertyNamesIn(definitions: Definitions): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const [keyword, value] of Object.entries(node)) {
      if (keyword === 'properties') for (const name of Object.keys(value)) names.add(name);
      visit(value);
    }
  };
  visit(definitions);
  return names;
}
