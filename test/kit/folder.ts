/** Folders and files of a test's own. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestScope } from './test-scope.ts';

/** Empty at first; removed with all that is in it when the test ends. */
export function temporaryFolder(life: TestScope): string {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-'));
  life.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Gives a file of this content to `use`, and removes it afterwards. */
export function withFile<Result>(content: string, use: (file: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-'));
  const file = join(folder, 'penstock.yaml');
  try {
    writeFileSync(file, content);
    return use(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
