/** The names in the documents exist: settings, variables, metrics, error codes, paths of the admin API, and texts of the log. */

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { routes } from '../../src/admin/routes.ts';
import { type JsonSchema, jsonSchema } from '../../src/config/settings.ts';
import { errorTable } from '../../src/request/errors.ts';
import { metricsTable } from '../../src/telemetry/metrics-table.ts';
import { root } from '../kit/command.ts';

const pages = [
  'README.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...globSync('docs/operations/*.md', { cwd: root }),
];
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** Every match in the pages that is not known, with its page. */
function unknownIn(pattern: RegExp, isKnown: (name: string) => boolean): readonly string[] {
  const found = pages.flatMap((page) =>
    [...textOf(page).matchAll(pattern)].map(([, name = '']) => ({ page, name })),
  );
  assert.ok(found.length > 0, 'the pattern finds nothing');
  return found.filter(({ name }) => !isKnown(name)).map(({ page, name }) => `${page}: ${name}`);
}

/** Whether a path such as `listen.tls.certFile` or `clients[].quota` leads to a setting or a section. */
function isSetting(path: string): boolean {
  const step = (node: JsonSchema | undefined, name: string): JsonSchema | undefined => {
    if (node === undefined) return undefined;
    const branches = [node, ...(node.anyOf ?? [])];
    for (const { properties, additionalProperties, items } of branches) {
      const next = properties?.[name] ?? items?.properties?.[name];
      if (next) return next;
      if (additionalProperties) return additionalProperties; // the name of an environment or a tenant
    }
    return undefined;
  };
  const [section = '', ...names] = path.replaceAll('[]', '').split('.');
  return names.reduce(step, jsonSchema.properties?.[section]) !== undefined;
}

describe('the names in the documents', () => {
  test('of settings exist', () => {
    const sections = Object.keys(jsonSchema.properties ?? {}).join('|');
    const pattern = new RegExp(`\`((?:${sections})(?:\\[\\])?\\.[A-Za-z][\\w.-]*)`, 'g');
    assert.deepEqual(
      unknownIn(pattern, (path) => isSetting(path)),
      [],
    );
  });

  test('of metrics exist', () => {
    const suffix = /_(bucket|count|sum)$/;
    assert.deepEqual(
      unknownIn(/\b(penstock_[a-z_]+)/g, (name) => Object.hasOwn(metricsTable, name.replace(suffix, ''))),
      [],
    );
  });

  test('of error codes exist', () => {
    // Variables, and a code of banks.
    const others = /^(PENSTOCK|OTEL|NODE)_|^(NO_COLOR|PSP_PI|(HTTPS?|NO)_PROXY)$|^CERTIFICATE_REVOKED$/;
    assert.deepEqual(
      unknownIn(/\b([A-Z]+(?:_[A-Z]+)+)\b/g, (name) => Object.hasOwn(errorTable, name) || others.test(name)),
      [],
    );
  });

  test('of paths of the admin API exist', () => {
    const known = Object.values(routes).map(
      ({ path }) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    );
    assert.deepEqual(
      unknownIn(/(\/api\/[\w/{}.-]+)/g, (path) =>
        known.some((pattern) => pattern.test(path) || pattern.test(`${path}/ID`)),
      ),
      [],
    );
  });

  test('of log lines exist', () => {
    const source = globSync('src/**/*.ts', { cwd: root }).map(textOf).join('\n');
    const isCommand = /^(npm|npx|docker|helm|openssl|sqlite3|ulimit|curl|penstock) /;
    // Code of at least three words without digits and code characters: a text of the gateway.
    assert.deepEqual(
      unknownIn(
        /`([a-z]+,?(?: [a-zA-Z;:,'-]+){2,})`/g,
        (text) => isCommand.test(text) || source.includes(text),
      ),
      [],
    );
  });
});
