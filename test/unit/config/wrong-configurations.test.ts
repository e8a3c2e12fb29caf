/** Each configuration in test/wrong-configurations gets exactly the messages that are written at its end. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadConfigAndFiles } from '../../../src/config/load.ts';

const folder = fileURLToPath(new URL('../../wrong-configurations', import.meta.url));
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => join(folder, name));

const heading = '# penstock check:';

/** The messages, as `penstock check` prints them. */
function messagesOf(file: string, text: string): readonly string[] {
  const [, assignments = ''] = /^# Environment: (.+)$/m.exec(text) ?? [];
  const variables = Object.fromEntries(assignments.split(' ').map((assignment) => assignment.split('=')));
  const loaded = loadConfigAndFiles(file, variables);
  const errors = loaded.kind === 'invalid' ? loaded.errors : [];
  const messages = [...errors, ...loaded.warnings.map((warning) => `warning: ${warning}`)];
  return messages.map((message) => message.replace(file, basename(file)));
}

const expectedIn = (text: string): readonly string[] =>
  (text.split(`${heading}\n`)[1] ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^# /, ''));

/** Whether a message is as expected; `…` matches any text. */
const matches = (message: string, expected: string) =>
  new RegExp(`^${expected.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*')}$`).test(message);

describe('a wrong configuration', () => {
  for (const file of files)
    test(`gets the messages that are written in ${basename(file)}`, () => {
      const text = readFileSync(file, 'utf8');
      const messages = messagesOf(file, text);
      const expected = expectedIn(text);
      assert.ok(messages.length > 0, 'nothing is wrong with it');
      if (
        messages.length === expected.length &&
        messages.every((one, index) => matches(one, expected[index] ?? ''))
      )
        return;
      const block = [heading, ...messages.map((message) => `# ${message}`)].join('\n');
      assert.fail(`${basename(file)} must end with these lines:\n\n${block}\n`);
    });
});
