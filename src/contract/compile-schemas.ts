/**
 * Compiles the contract's JSON Schemas with Ajv, and translates its errors into deviations. The only file that uses Ajv. It loads
 * Ajv when the first contract is prepared.
 */

import { createRequire } from 'node:module';
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
   * @param definition the name of a definition that has meanings
   * @param root path of the value in the message, such as `body`
   */
  validate(definition: string, value: unknown, root: string, list: DeviationList): void;
  /** The path of a deviation: names that occur in no schema become `*`, indices become `#`. */
  pathOf(root: string, segments: readonly string[]): string;
}

/** Level and effect of the errors in one kind of message. */
export interface ErrorMeanings {
  /** Of all errors without a meaning of their own. */
  readonly violation: { readonly level: Level; readonly effect: Effect };
  readonly unknownField: { readonly level: Level; readonly effect: Effect };
  readonly emptyText: { readonly level: Level; readonly effect: Effect };
  /** Converts the level and effect that a schema states for a request. */
  readonly translate: (absence: Absence) => Absence;
}

/** Whether a value satisfies a definition in every contract, without any deviation. */
export type SatisfiesAll = (definition: string, value: unknown) => boolean;

interface Remark extends Absence {
  readonly matches: string;
}

/** Compiles one definition in each turn of the event loop. @param meanings of the definitions that describe a whole message */
export async function compileSchemas(
  definitions: Definitions,
  meanings: Readonly<Record<string, ErrorMeanings>>,
): Promise<Validators> {
  const checks = new Map<string, Check>();
  const allErrors = true; // the size of the value is bounded: read-json.ts
  for await (const [name, validate] of compileEach(definitions, allErrors)) {
    const ofErrors = meanings[name];
    if (ofErrors) checks.set(name, { validate, ofErrors });
  }
  const names = propertyNamesIn(definitions);
  const pathOf = (root: string, segments: readonly string[]) => schemaPath(root, segments, names);
  return {
    pathOf,
    validate(definition, value, root, list) {
      const check = checks.get(definition);
      if (!check) throw new Error(`${definition} was not prepared`);
      if (check.validate(value)) return;
      for (const error of check.validate.errors ?? []) {
        list.addAll([deviationOf(error, root, names, check.ofErrors)]);
        if (list.isFull) break;
      }
      check.validate.errors = null; // an error refers to the value
    },
  };
}

/** Compiles combined definitions, one in each turn of the event loop. */
export async function compileCombined(definitions: Definitions): Promise<SatisfiesAll> {
  const checks = new Map<string, Validate>();
  for await (const [name, validate] of compileEach(definitions, false)) checks.set(name, validate);
  return (definition, value) => {
    const validate = checks.get(definition);
    if (!validate) throw new Error(`${definition} was not prepared`);
    if (validate(value)) return true;
    validate.errors = null; // an error refers to the value
    return false;
  };
}

async function* compileEach(
  definitions: Definitions,
  allErrors: boolean,
): AsyncGenerator<readonly [name: string, Validate]> {
  // Not `import()`: Node evaluates a module only once, also if that failed at the limit of open files.
  const { Ajv, _ } = createRequire(import.meta.url)('ajv') as typeof import('ajv'); // `require` has no types
  const ajv = new Ajv({
    allErrors,
    allowUnionTypes: true,
    messages: false,
    logger: false,
    // Shortens compilation: our schemas need no validation, and optimised validators are not faster.
    meta: false,
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
    formats: { date: isDate, 'date-time': isDateAndTime },
  });
  addKeywords(ajv);
  addLengths(ajv, _);
  ajv.addSchema({ $id: 'contract', definitions: withAbsences(definitions) });
  for (const name of Object.keys(definitions)) {
    await nextTurn(); // shared definitions come first, so that no turn compiles many
    const validate = ajv.getSchema(`contract#/definitions/${name}`);
    if (validate) yield [name, validate];
  }
}

interface Validate {
  (value: unknown): unknown;
  errors?: ErrorObject[] | null;
}

interface Check {
  readonly validate: Validate;
  readonly ofErrors: ErrorMeanings;
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
        let found: string[] | undefined;
        for (const name in value) if (absent.has(name)) found = [...(found ?? []), name];
        if (!found) return true;
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
      return checkWithMeaning('remark', remark, (value) => !pattern.test(value));
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
      return checkWithMeaning('characters', meaning, (value) =>
        Array.from(value).every((one) => allowed.has(one)),
      );
    },
  });
}

/**
 * Checks lengths in characters. Ajv counts the characters of every text. The length of a JavaScript string is at least as large, so
 * that a string within the limit need not be counted.
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
 * Replaces the keyword `absent` of properties with one keyword `absences` of their object: Ajv generates half a kilobyte of code for
 * each property that has a keyword.
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

/** A check whose errors have this meaning. Ajv changes the error objects, so that each error needs a new one. */
function checkWithMeaning(
  keyword: string,
  meaning: Absence,
  isFine: (value: string) => boolean,
): KeywordCheck {
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
  { violation, unknownField, emptyText, translate }: ErrorMeanings,
): Deviation {
  const segments = error.instancePath === '' ? [] : error.instancePath.slice(1).split('/');
  const at = (...more: string[]) => schemaPath(root, [...segments, ...more], names);
  switch (error.keyword) {
    case 'required':
      return { rule: 'required', path: at(String(error.params.missingProperty)), ...violation };
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
      return { rule: ruleOf[error.keyword] ?? 'type', path: at(), ...violation };
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
