/** The commands of package.json run each test file exactly once: the globs of the batches neither overlap nor leave a file out. */

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const filesOf = (pattern: string) => globSync(pattern, { cwd: root }).toSorted();

const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(read('package.json'));

/** The test files that a command runs, itself or in a batch, in alphabetical order. */
function testFilesOf(command = ''): readonly string[] {
  const patterns = Array.from(command.matchAll(/"(test\/[^"]+)"/g), ([, pattern = '']) => pattern);
  return patterns
    .flatMap(filesOf)
    .flatMap((file) => (file.startsWith('test/batches/') ? filesOfBatch(file) : [file]))
    .toSorted();
}

function filesOfBatch(batch: string): readonly string[] {
  const pattern = /^defineBatch\('([^']+)'\);$/m.exec(read(batch))?.[1];
  assert.ok(pattern !== undefined, `${batch} calls defineBatch with a glob`);
  return filesOf(pattern);
}

test('npm test and npm run test:scenarios run each test file exactly once', () => {
  const all = filesOf('test/**/*.test.ts').filter((file) => !file.startsWith('test/batches/'));
  const run = [...testFilesOf(scripts.test), ...testFilesOf(scripts['test:scenarios'])];
  assert.deepEqual(run.toSorted(), all);
});

test('npm run test:unit runs each file of the unit and architecture tests exactly once', () => {
  assert.deepEqual(testFilesOf(scripts['test:unit']), filesOf('test/{architecture,unit}/**/*.test.ts'));
});
