/** Runs several test files in one process. */

import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'node:test';
import './untracked-promises.ts'; // before the first use of node:test
import './test-scope.ts'; // its hook must run after the tests of all files, not after those of the first one

const root = join(import.meta.dirname, '../..');

/**
 * Defines the tests of all files that match, one file after the other. A process of its own would cost each file 0.7 s of
 * CPU, mostly for loading the gateway. The hooks of a file run before and after its own tests.
 *
 * @param pattern relative to the repository
 */
export function defineBatch(pattern: string): void {
  for (const file of globSync(pattern, { cwd: root }).toSorted()) {
    describe(file, async () => void (await import(join(root, file))));
  }
}
