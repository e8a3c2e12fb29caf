/** docs/configuration.md and config/penstock.schema.json: every setting, from the schema. */

import { restartSettings } from '../../src/config/config-changes.ts';
import { variableName } from '../../src/config/environment-variables.ts';
import { anyName, type JsonSchema, jsonSchema, type Setting, settings } from '../../src/config/settings.ts';
import { code, generatedFrom, page, table } from './markdown.ts';

/** The JSON Schema. Editors use it to complete and validate the file. */
export const configurationSchema = (): string =>
  `${JSON.stringify({ title: 'Penstock', ...jsonSchema }, null, 2)}\n`;

/** The page, with a section for each section of the configuration. */
export const configurationPage = (): string =>
  page([
    '# Configuration',
    generatedFrom('src/config/sections'),
    ...introduction,
    ...Object.entries(jsonSchema.properties ?? {}).flatMap(([name, section]) => sectionBlocks(name, section)),
  ]);

const introduction = [
  'The configuration is one YAML file, named by `--config FILE` or `PENSTOCK_CONFIG`. Every setting has a default unless it ' +
    'is marked *required*. Editors complete and validate a file that begins with ' +
    '`# yaml-language-server: $schema=./penstock.schema.json`.',
  'The file is YAML 1.2 in UTF-8: `true` and `false` are booleans, `yes` and `no` are text. Anchors (`&name`), aliases (`*name`) and merge ' +
    'keys (`<<`) work. Variables of the shell (`$NAME`) are **not** replaced; set the environment variable of the setting instead.',
  table(
    ['command', 'purpose'],
    [
      [
        '`penstock check`',
        'Validates the configuration and the files that it names. Reports all errors at once, each with its line, the ' +
          'defaults that follow other settings, and warnings: placeholders, a listener without identified clients, ' +
          'certificates that expire, and others. `--strict` treats warnings as errors.',
      ],
      [
        '`penstock config show`',
        'Prints the effective value of every setting, with its source: a line of the file, an environment variable, or ' +
          'the default. Secrets are masked. The output is a valid configuration file.',
      ],
      [
        '`penstock config diff FILE`',
        'Prints what changes if FILE replaces the configuration: by a reload, and after a restart.',
      ],
    ],
  ),
  '[Commands](operations/commands.md) says how to run `penstock` in a checkout.',
  'The environment variable next to a setting overrides the file. Separate the entries of a list by commas; write a list of ' +
    'mappings as JSON. `<NAME>` is the name of an environment or a tenant in capitals, with `_` for `-`: ' +
    '`PENSTOCK_ENVIRONMENTS_PRE_PROD_BASE_URL` for the environment `pre-prod`. A variable `PENSTOCK_…` that is not the name of a ' +
    'setting is an error.',
  'Secrets are not part of the file. They are read from separate files (settings that end in `File`, relative to the ' +
    'working directory) or from environment variables. `PENSTOCK_ADMIN_TOKEN` contains the token of the operator "admin".',
  'SIGHUP, `penstock reload` or `POST /api/config/reload` reloads the configuration of one instance without interrupting ' +
    'requests. If the new configuration is invalid, the previous one stays in effect. The log states what changed and who asked. ' +
    `These settings take effect after a restart only: ${restartSettings.map((setting) => setting.replace(/^([\w.]+)/, '`$1`')).join(', ')}.`,
  table(
    ['type', 'examples'],
    [
      ['duration', '`500ms`, `10s`, `2min`, `24h`, `400d`'],
      ['size', '`512B`, `64KiB`, `1MiB`, `1GiB`'],
      ['rate', '`50/s`, `100/min`, `10/h`, `0.5/s`'],
      ['percentage', '`50%`, `0.1%`'],
    ],
  ),
];

function sectionBlocks(name: string, section: JsonSchema): readonly string[] {
  const sectionSettings = settings.filter(({ path }) => path[0] === name);
  const entries = sectionSettings.flatMap(({ path, schema }) => entriesOf(path, schema));
  return [
    `## ${name}`,
    section.properties ? (section.description ?? '') : '', // a section that is itself a setting has its description in its row
    table(
      ['setting', 'default', 'type', 'description', 'environment variable'],
      sectionSettings.map((setting) => [...cellsOf(setting), code(variableName(setting.path))]),
    ),
    entries.length > 0 ? 'Each entry:' : '',
    entries.length > 0 ? table(['setting', 'default', 'type', 'description'], entries.map(cellsOf)) : '',
  ];
}

/** The settings in each entry of a list of mappings. */
function entriesOf(path: readonly string[], list: JsonSchema): readonly Setting[] {
  const entry = `${path.at(-1)}[]`;
  return list.items?.properties ? leavesOf(list.items, [...path.slice(0, -1), entry]) : [];
}

const leavesOf = (node: JsonSchema, path: readonly string[]): readonly Setting[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, schema]) => {
    const required = node.required?.includes(name) ?? false;
    return schema.properties
      ? leavesOf(schema, [...path, name])
      : [{ path: [...path, name], schema, required }];
  });

const cellsOf = ({ path, schema, required }: Setting): readonly string[] => [
  code(path.join('.').replace(anyName, '<name>')),
  required ? requiredText(path) : defaultOf(schema),
  typeOf(schema),
  schema.description ?? '',
];

/** A required setting in an optional mapping is required only together with the mapping. */
function requiredText(path: readonly string[]): string {
  const parent = path.at(-2) ?? '';
  return parent === anyName || parent.endsWith('[]') ? '*required*' : `*required* with ${code(parent)}`;
}

function defaultOf(schema: JsonSchema): string {
  if (schema.defaultText !== undefined) return schema.defaultText;
  if (schema.default === undefined) return '';
  if (typeof schema.default === 'string') return code(schema.default);
  return code(JSON.stringify(schema.default).replaceAll('"', '').replaceAll(',', ', '));
}

function typeOf(schema: JsonSchema): string {
  if (schema.unit !== undefined) return schema.unit;
  if (schema.const !== undefined) return code(String(schema.const));
  if (schema.enum) return schema.enum.map((choice) => code(String(choice))).join(', ');
  if (schema.anyOf)
    return [...new Set(schema.anyOf.flatMap((choice) => typeOf(choice).split(' or ')))].join(' or ');
  if (schema.items) return schema.items.properties ? 'list of mappings' : `list of ${typeOf(schema.items)}s`;
  if (schema.type === 'integer') return `${schema.minimum} to ${schema.maximum}`;
  return [schema.type ?? []]
    .flat()
    .map((type) => typeNames[type] ?? type)
    .join(' or ');
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'string',
  boolean: '`true` or `false`',
  null: '`null`',
  object: 'mapping',
};
