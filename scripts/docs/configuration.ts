/** docs/configuration.md and config/penstock.schema.json: every setting, from the schema. */

import { variableName } from '../../src/config/environment-variables.ts';
import {
  anyEnvironment,
  type JsonSchema,
  jsonSchema,
  type Setting,
  settings,
} from '../../src/config/settings.ts';
import { code, madeFrom, page, table } from './markdown.ts';

/** The JSON Schema, with which editors complete and check the file while it is written. */
export const configurationSchema = (): string =>
  `${JSON.stringify({ title: 'Penstock', ...jsonSchema }, null, 2)}\n`;

/** The page, a section for each part of the configuration. */
export const configurationPage = (): string =>
  page([
    '# Configuration',
    madeFrom('src/config/sections'),
    ...introduction,
    ...Object.entries(jsonSchema.properties ?? {}).flatMap(([name, section]) => sectionBlocks(name, section)),
  ]);

const introduction = [
  'One YAML file, named by `--config FILE` or `PENSTOCK_CONFIG`. Every setting has a default, but for those that say ' +
    '*required*; what is wrong is told all at once, by line, and `penstock check` does only that. A file that begins with ' +
    '`# yaml-language-server: $schema=./penstock.schema.json` is completed and checked by editors.',
  'Any setting can be given by the environment variable beside it, which wins over the file. There, lists are separated ' +
    'by commas, lists of mappings are written as JSON, and `<NAME>` is the name of an environment in capitals, with `_` for `-`.',
  'Secrets never stand in the file: they are read from files of their own (settings that end in `File`, relative to the ' +
    'working directory) or from environment variables. `PENSTOCK_ADMIN_TOKEN` holds the token of the operator "admin".',
  table(
    ['written as', 'looks like'],
    [
      ['duration', '`500ms`, `10s`, `2min`, `24h`, `400d`'],
      ['size', '`512B`, `64KiB`, `1MiB`, `1GiB`'],
      ['rate', '`50/s`, `100/min`, `10/h`, `0.5/s`'],
      ['percentage', '`50%`, `0.1%`'],
    ],
  ),
];

function sectionBlocks(name: string, section: JsonSchema): readonly string[] {
  const own = settings.filter(({ path }) => path[0] === name);
  const entries = own.flatMap(({ path, schema }) => entriesOf(path, schema));
  return [
    `## ${name}`,
    section.properties ? (section.description ?? '') : '', // a section that is itself a setting says it in its row
    table(
      ['setting', 'default', 'written as', 'what it says', 'environment variable'],
      own.map((setting) => [...cellsOf(setting), code(variableName(setting.path))]),
    ),
    entries.length > 0 ? 'Each entry:' : '',
    entries.length > 0
      ? table(['setting', 'default', 'written as', 'what it says'], entries.map(cellsOf))
      : '',
  ];
}

/** The settings in each entry of a list of mappings. */
function entriesOf(path: readonly string[], list: JsonSchema): readonly Setting[] {
  const at = `${path.at(-1)}[]`;
  return list.items?.properties ? leavesOf(list.items, [...path.slice(0, -1), at]) : [];
}

const leavesOf = (node: JsonSchema, path: readonly string[]): readonly Setting[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, schema]) => {
    const required = node.required?.includes(name) ?? false;
    return schema.properties
      ? leavesOf(schema, [...path, name])
      : [{ path: [...path, name], schema, required }];
  });

const cellsOf = ({ path, schema, required }: Setting): readonly string[] => [
  code(path.join('.').replace(anyEnvironment, '<name>')),
  required ? requiredText(path) : defaultOf(schema),
  kindOf(schema),
  schema.description ?? '',
];

/** What is required in a mapping that may itself be left out is required with it. */
function requiredText(path: readonly string[]): string {
  const parent = path.at(-2) ?? '';
  return parent === anyEnvironment || parent.endsWith('[]')
    ? '*required*'
    : `*required* with ${code(parent)}`;
}

function defaultOf(schema: JsonSchema): string {
  if (schema.defaultText !== undefined) return schema.defaultText;
  if (schema.default === undefined) return '';
  if (typeof schema.default === 'string') return code(schema.default);
  return code(JSON.stringify(schema.default).replaceAll('"', '').replaceAll(',', ', '));
}

function kindOf(schema: JsonSchema): string {
  if (schema.unit !== undefined) return schema.unit;
  if (schema.const !== undefined) return code(String(schema.const));
  if (schema.enum) return schema.enum.map((choice) => code(String(choice))).join(', ');
  if (schema.anyOf)
    return [...new Set(schema.anyOf.flatMap((choice) => kindOf(choice).split(' or ')))].join(' or ');
  if (schema.items) return schema.items.properties ? 'list of mappings' : `list of ${kindOf(schema.items)}s`;
  if (schema.type === 'integer') return `${schema.minimum} to ${schema.maximum}`;
  return [schema.type ?? []]
    .flat()
    .map((type) => kinds[type] ?? type)
    .join(' or ');
}

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: '`true` or `false`',
  null: '`null`',
  object: 'mapping',
};
