/** A folder of a test's own. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Life } from './life.ts';

/** Empty at first; removed with all that is in it when the test ends. */
export function temporaryFolder(life: Life): string {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-'));
  life.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
