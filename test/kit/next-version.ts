/** Later versions of the gateway: a copy of its sources with more migrations. */

import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.ts';
import { temporaryFolder } from './folder.ts';
import type { TestScope } from './test-scope.ts';

/** The same script for both dialects. */
export interface NextMigration {
  readonly oldest: number;
  readonly sql: string;
}

export interface NextVersion {
  /** For Node: `src/main.ts` of the copy. */
  readonly main: string;
  /** Its code, in this process. */
  load(): Promise<typeof import('../../src/store/gateway-database.ts')>;
}

/** Removed when the test ends. */
export function createNextVersion(life: TestScope, ...more: readonly NextMigration[]): NextVersion {
  const folder = temporaryFolder(life);
  for (const name of readdirSync(root))
    if (name !== 'src' && name !== '.git') symlinkSync(join(root, name), join(folder, name));
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  const file = join(folder, 'src/store/migrations.ts');
  const added = more.map(
    ({ oldest, sql }) => `  ${JSON.stringify({ oldest, sqlite: sql, postgres: sql })},\n`,
  );
  const [before = '', after, ...others] = readFileSync(file, 'utf8').split('\n];\n\n/** The newest version');
  assert.ok(after !== undefined && others.length === 0, 'the end of the list of migrations is found');
  writeFileSync(file, `${before}\n${added.join('')}];\n\n/** The newest version${after}`);
  return {
    main: join(folder, 'src/main.ts'),
    load: () => import(join(folder, 'src/store/gateway-database.ts')),
  };
}

/** Another column and an index, which the builds of the version before do not know, and can leave alone. */
export const expansion: NextMigration = {
  oldest: 1,
  sql: `ALTER TABLE ledger ADD COLUMN channel text NOT NULL DEFAULT 'api';
    CREATE INDEX ledger_channel ON ledger (channel);`,
};

/** Removes a column that only the first version uses. */
export const contraction: NextMigration = {
  oldest: 2,
  sql: 'ALTER TABLE ledger DROP COLUMN fingerprint_key',
};
