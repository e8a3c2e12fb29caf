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

/** It writes the column of `expansion`. Removed when the test ends. */
export function createNextVersion(life: TestScope, ...more: readonly NextMigration[]): NextVersion {
  const folder = temporaryFolder(life);
  for (const name of readdirSync(root))
    if (name !== 'src' && name !== '.git') symlinkSync(join(root, name), join(folder, name));
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  const store = join(folder, 'src/store');
  const added = more.map(
    ({ oldest, sql }) => `  ${JSON.stringify({ oldest, sqlite: sql, postgres: sql })},\n`,
  );
  replaceIn(
    join(store, 'migrations.ts'),
    '\n];\n\n/** The newest version',
    `\n${added.join('')}];\n\n/** The newest version`,
  );
  if (more.includes(expansion)) {
    const file = join(store, 'ledger-statements.ts');
    replaceIn(file, 'INTO ledger AS l (request_id,', 'INTO ledger AS l (channel, request_id,');
    replaceIn(
      file,
      "SELECT i.request_id, i.tenant, i.operation, i.payment, 'claimed'",
      "SELECT 'api', i.request_id, i.tenant, i.operation, i.payment, 'claimed'",
    );
  }
  return {
    main: join(folder, 'src/main.ts'),
    load: () => import(join(store, 'gateway-database.ts')),
  };
}

function replaceIn(file: string, text: string, replacement: string): void {
  const parts = readFileSync(file, 'utf8').split(text);
  assert.equal(parts.length, 2, `${file} contains once: ${text}`);
  writeFileSync(file, parts.join(replacement));
}

/** A column with a default and an index: builds that do not know them can use the database. */
export const expansion: NextMigration = {
  oldest: 1,
  sql: `ALTER TABLE ledger ADD COLUMN channel text NOT NULL DEFAULT 'api';
    CREATE INDEX ledger_channel ON ledger (channel);`,
};

/** Without the default, PostgreSQL refuses the claims of builds that do not write the column. */
export const contraction: NextMigration = {
  oldest: 2,
  sql: 'ALTER TABLE ledger ALTER COLUMN channel DROP DEFAULT',
};
