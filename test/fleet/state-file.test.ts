/** A single instance: what it still knows after it was killed, with its state in a file and without. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { readAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { startSingleInstance } from '../kit/fleet.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { initiation } from '../kit/request.ts';
import { environmentsOf, readinessReasons } from './instance-queries.ts';

test('an instance with a state file that was killed still knows the active environment and the environment of every payment', async (t) => {
  const instance = await startSingleInstance(t, { file: `${temporaryFolder(t)}/state` });
  assert.deepEqual(await readinessReasons(instance), []);
  const born = [await instance.pay('shop')];
  await switchEnvironment(instance, 'production');
  born.push(await instance.pay('shop'));

  assert.equal(await instance.stop('SIGKILL'), 'SIGKILL');
  await instance.start();

  const { active, version } = await readAdminApi(instance, '/api/environments');
  assert.deepEqual([active, version], ['production', 2]);
  assert.deepEqual(await environmentsOf(born, instance), ['sandbox', 'production']);
  assert.match(await instance.pay('shop'), /^production-/);
  assert.equal(await instance.run('audit', 'verify').exitCode(), 0);
  assert.deepEqual(await readinessReasons(instance), []);
  assert.ok(instance.logged().every(({ level }) => level !== 'error'));
});

test('an instance without a state file reports in its log and in /health/ready what a restart loses', async (t) => {
  const instance = await startSingleInstance(t, {});
  const says =
    /the database is in memory: a restart loses the used X-Request-IDs, the payments in doubt, the environment of each payment/;
  assert.match(String(await readinessReasons(instance)), says);
  assert.ok(instance.logged().some(({ level, message }) => level === 'warn' && says.test(`${message}`)));
});

test('an instance whose state file is in use does not start, and reports the reason', async (t) => {
  const file = `${temporaryFolder(t)}/state`;
  await startSingleInstance(t, { file });
  await assert.rejects(startSingleInstance(t, { file }), (error: Error) => {
    assert.match(error.message, /ended with 1/);
    assert.match(error.message, /the gateway cannot start/);
    assert.ok(error.message.includes(`state.file: ${file} is in use by another process; stop that process`));
    return true;
  });
});

test('responses to payments are stored encrypted, and replayed after a restart and a change of keys', async (t) => {
  const folder = temporaryFolder(t);
  const [file, encryptionKeyFile] = [`${folder}/state`, `${folder}/keys`];
  const [old, fresh] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
  writeFileSync(encryptionKeyFile, old);
  const instance = await startSingleInstance(t, { file, encryptionKeyFile });
  const one = { ...initiation, headers: [...initiation.headers, ['X-Request-ID', randomUUID()] as const] };
  const first = await instance.ask('shop', one);
  assert.equal(first.status, 201);
  await instance.stop('SIGKILL');
  const stored = storedIn(file);
  assert.ok(stored.includes('initiatePayment'), 'the ledger is in the file');
  const readable = [first.text, Buffer.from(first.text).toString('base64'), 'ASPSP-SCA-Approach'];
  assert.deepEqual(
    readable.filter((part) => stored.includes(part)),
    [],
  );

  writeFileSync(encryptionKeyFile, `${fresh}\n${old}\n`);
  await instance.start();
  const again = await instance.ask('shop', one);
  assert.equal(again.header('Idempotent-Replayed'), 'true', again.text);
  assert.equal(again.text, first.text);
  await instance.stop('SIGKILL');

  writeFileSync(encryptionKeyFile, fresh);
  await instance.start();
  const lost = await instance.ask('shop', one);
  assert.equal(
    lost.header('Penstock-Error'),
    'DUPLICATE_IN_DOUBT',
    'a payment whose record cannot be decrypted is never sent again',
  );
});

/** What the database contains. */
function storedIn(file: string): Buffer {
  const files = [file, `${file}-wal`];
  return Buffer.concat(files.filter(existsSync).map((path) => readFileSync(path)));
}
