/** `npm run bench:storage`: how much one tenant with long answers stores in Redis, and what that costs another tenant. */

import { parseArgs } from 'node:util';
import { withCleanup } from './cleanup.ts';
import { formatTable } from './format-table.ts';
import { type Answers, measureStorage } from './storage/long-answers.ts';

const kinds: Readonly<Record<string, Answers>> = {
  errors: { status: 403, bytes: 4 * 1024 ** 2 },
  payments: { status: 201, bytes: 4 * 1024 ** 2 },
  /** Just within `idempotency.maxStoredAnswer`: stored whole. */
  whole: { status: 403, bytes: 60 * 1024 },
};

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(kinds).join() },
    answers: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '3600' },
  },
});

const rows: (readonly string[])[] = [];
for (const name of values.only.split(',')) {
  const answers = kinds[name];
  if (!answers) throw new Error(`--only takes ${Object.keys(kinds).join(', ')}; not ${name}`);
  await withCleanup(async (life) => {
    const run = { count: Number(values.answers), maxMs: Number(values.seconds) * 1_000 };
    rows.push([name, ...(await measureStorage(life, answers, run))]);
    console.error(rows.at(-1)?.join(' | '));
  });
}
const columns = [
  'answers',
  'offered',
  'stored',
  'refused (429)',
  'offered MiB',
  'Redis MiB',
  'Redis bytes each',
  'counted MiB',
  'limit MiB',
  "the other tenant's payments",
  'of them accepted',
  'offered per second',
];
console.log(`\n${formatTable(columns, rows)}`);
