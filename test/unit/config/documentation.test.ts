import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { configurationPage, configurationSchema } from '../../../scripts/docs/configuration.ts';
import { errorsPage } from '../../../scripts/docs/errors.ts';
import { type JsonSchema, jsonSchema, settings } from '../../../src/config/settings.ts';

const inRepository = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

describe('the documentation of the configuration', () => {
  test('says what every setting does, inside lists too', () => {
    const silent = (node: JsonSchema, path: string): readonly string[] => [
      ...(node.description ? [] : [path]),
      ...Object.entries(node.properties ?? {}).flatMap(([name, inner]) => silent(inner, `${path}.${name}`)),
      ...Object.entries(node.items?.properties ?? {}).flatMap(([name, inner]) =>
        silent(inner, `${path}[].${name}`),
      ),
    ];
    const sections = Object.entries(jsonSchema.properties ?? {});
    const environment = jsonSchema.properties?.environments?.additionalProperties || {};
    assert.deepEqual(
      sections.flatMap(([name, section]) => silent(section, name)),
      [],
    );
    assert.deepEqual(silent({ ...environment, description: 'has a name' }, 'environments'), []);
  });

  test('gives every setting a default, unless it is required or may be absent', () => {
    const absent = ['clientCaFile', 'certFile', 'keyFile'];
    const without = settings.filter(
      ({ schema, required }) => !required && schema.default === undefined && !schema.defaultText,
    );
    assert.deepEqual(
      without.filter(({ path }) => !absent.includes(path.at(-1) ?? '')),
      [],
    );
  });

  test('is made from the schema and up to date; if not: npm run docs', () => {
    assert.equal(inRepository('docs/configuration.md'), configurationPage());
    assert.equal(inRepository('config/penstock.schema.json'), configurationSchema());
  });
});

test('the documentation of the errors is made from their table and up to date; if not: npm run docs', () => {
  assert.equal(inRepository('docs/errors.md'), errorsPage());
});
