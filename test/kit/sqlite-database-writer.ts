/**
 * A process that executes writes of the ledger in a SQLite file: `node sqlite-database-writer.ts FILE COUNT SIZE`.
 *
 * It prints `open`, then `claimed ID`, `sending ID` and `answered ID` after each step of each write (ten run at the same time), then `done`.
 * It prints errors as text and keeps running.
 */

import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { DatabaseError } from '../../src/store/database.ts';
import { createLedgerTable } from '../../src/store/ledger.ts';
import { migrate } from '../../src/store/migrations.ts';
import { openSqlite } from '../../src/store/sqlite.ts';

const [file = '', count = '0', size = '0'] = process.argv.slice(2);
const print = (text: unknown) => writeSync(1, `${text}\n`); // synchronously, in case the process is killed next
const database = openSqlite(file);
const ledger = createLedgerTable(database);
const numbers = Array.from({ length: Number(count) }, (_, index) => index).values();
const body = Buffer.alloc(Number(size), 'x');

async function writeAll(): Promise<void> {
  for (const number of numbers) {
    const requestId = `id-${number}`;
    const claim = {
      ...{ tenant: 'shop', operation: 'initiatePayment', payment: '', requestId, attempt: randomUUID() },
      ...{
        instance: 'one',
        path: '/',
        fingerprintKey: undefined,
        fingerprintRequest: 'r',
        fingerprintContent: 'c',
        isFirstFactor: false,
      },
    };
    const outcome = await ledger.claim(claim);
    if (outcome.kind === 'refused') throw outcome.cause;
    print(`claimed ${requestId}`);
    const sent = { ...claim, environment: 'sandbox', listenMs: 1_000, markedAtMs: performance.now() };
    if (!(await ledger.mark({ ...sent, identityRevision: 0 }))) throw new Error('not marked');
    print(`sending ${requestId}`);
    await ledger.recordAnswer(sent, {
      status: 201,
      headers: '[]',
      body,
      outcome: undefined,
      why: undefined,
      created: undefined,
    });
    print(`answered ${requestId}`);
  }
}

try {
  await migrate(database);
  print('open');
  await Promise.all(Array.from({ length: 10 }, writeAll));
  print('done');
} catch (error) {
  print(error instanceof DatabaseError ? error.reason : error);
}
setInterval(() => {}, 60_000); // until it is killed
