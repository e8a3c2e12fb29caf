/** The page about the profile of a bank is complete, and its examples are valid. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { readProfile } from '../../src/config/contract-profile.ts';
import { profileSchema } from '../../src/contract/profile.ts';
import { root } from '../kit/command.ts';

const page = readFileSync(join(root, 'docs/operations/contract-profile.md'), 'utf8');
const schema: unknown = z.toJSONSchema(profileSchema, { io: 'input' });

/** The names of all keys of a JSON Schema, and the values of its enumerations. */
function namesIn(node: unknown): readonly string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([keyword, value]) => {
    if (keyword === 'enum' && Array.isArray(value)) return value.map(String);
    return [...(keyword === 'properties' ? Object.keys(value) : []), ...namesIn(value)];
  });
}

test('the page about the profile of a bank names every key and every value', () => {
  const names = new Set(namesIn(schema));
  assert.ok(names.size > 60);
  assert.deepEqual(
    [...names].filter((name) => !page.includes(`\`${name}\``)),
    [],
  );
});

test('every profile on the page can be used', () => {
  const examples = [...page.matchAll(/^```yaml\n((?:products|fields|levels):[\s\S]*?)^```$/gm)];
  assert.ok(examples.length > 0);
  for (const [, text = ''] of examples)
    assert.ok('profile' in readProfile(Buffer.from(text), 'example.yaml'), text);
});

test('the page shows the errors that its profile with mistakes causes', () => {
  const [, text = '', errors = ''] =
    /^```yaml\n# bank\.yaml\n([\s\S]*?)^```$[\s\S]*?^```text\n([\s\S]*?)^```$/m.exec(page) ?? [];
  const result = readProfile(Buffer.from(`# bank.yaml\n${text}`), 'bank.yaml');
  const shown = errors
    .trim()
    .split('\n')
    .map((line) => line.replace(/^.*profile: the file has a mistake: /, ''));
  assert.deepEqual('errors' in result && result.errors, shown);
});
