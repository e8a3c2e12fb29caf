/** What the README says in the words of other documents. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOf } from './blocks.ts';

test('the README says whether Penstock is ready for production in the words of SECURITY.md', () => {
  const words = (text: string) => text.replaceAll(/\s+/g, ' ');
  const section = words(textOf('SECURITY.md', 'Is it ready for production?'));
  const [, answer = ''] = /^Is it ready for production\? (.*?) \|/.exec(section) ?? [];
  assert.match(answer, /^(Yes|No)\. \w+/);
  const readme = words(textOf('README.md'));
  const at = readme.indexOf(
    `**[Is it ready for production?](SECURITY.md#is-it-ready-for-production)** ${answer}`,
  );
  assert.ok(at > 0 && at < readme.indexOf('npm ci'), `near its top, the README says: ${answer}`);
});
