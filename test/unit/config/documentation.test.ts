/** The generated documentation of the configuration and of the errors. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { configurationPage, configurationSchema } from '../../../scripts/docs/configuration.ts';
import { errorsHtml, errorsPage } from '../../../scripts/docs/errors.ts';
import { type JsonSchema, jsonSchema, settings } from '../../../src/config/settings.ts';

const inRepository = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

describe('the documentation of the configuration', () => {
  test('describes every setting, including those in lists', () => {
    const undescribed = (node: JsonSchema, path: string): readonly string[] => [
      ...(node.description ? [] : [path]),
      ...Object.entries(node.properties ?? {}).flatMap(([name, inner]) =>
        undescribed(inner, `${path}.${name}`),
      ),
      ...Object.entries(node.items?.properties ?? {}).flatMap(([name, inner]) =>
        undescribed(inner, `${path}[].${name}`),
      ),
    ];
    const sections = Object.entries(jsonSchema.properties ?? {});
    const environment = jsonSchema.properties?.environments?.additionalProperties || {};
    assert.deepEqual(
      sections.flatMap(([name, section]) => undescribed(section, name)),
      [],
    );
    assert.deepEqual(
      undescribed({ ...environment, description: 'described by the section' }, 'environments'),
      [],
    );
  });

  test('gives every setting a default unless it is required or optional', () => {
    const optional = ['clientCaFile', 'certFile', 'keyFile'];
    const withoutDefault = settings.filter(
      ({ schema, required }) => !required && schema.default === undefined && !schema.defaultText,
    );
    assert.deepEqual(
      withoutDefault.filter(({ path }) => !optional.includes(path.at(-1) ?? '')),
      [],
    );
  });

  test('docs/configuration.md and the JSON Schema are up to date (otherwise run npm run docs)', () => {
    assert.equal(inRepository('docs/configuration.md'), configurationPage());
    assert.equal(inRepository('config/penstock.schema.json'), configurationSchema());
  });
});

test('the error reference is up to date with the error table (otherwise run npm run docs)', () => {
  assert.equal(inRepository('docs/errors.md'), errorsPage());
  assert.equal(inRepository('src/admin/console/errors.html'), errorsHtml());
});
