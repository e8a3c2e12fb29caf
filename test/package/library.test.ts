/** The library: the example of the documentation against the installed package. */

import assert from 'node:assert/strict';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { root, startCommand } from '../kit/command.ts';
import { startBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { runShell } from './dockerfile.ts';
import { installation } from './packed.ts';

const portIn = (output: string, listener: string) =>
  new RegExp(`${listener} (?:is )?on port (\\d+)`).exec(output)?.[1];

describe('the example of the library', () => {
  let folder = '';
  before(() => {
    ({ folder } = installation());
    copyFileSync(join(root, 'examples/library/gateway.ts'), join(folder, 'gateway.ts'));
  });

  const startExample = (t: TestContext, variables: Readonly<Record<string, string>>) =>
    startCommand(t, process.execPath, ['gateway.ts'], variables, folder);

  test('passes the strictest checks of the compiler, types of the package included', () => {
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'es2024',
      module: 'nodenext',
      skipLibCheck: false,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['gateway.ts'] }));
    assert.equal(runShell(`${join(root, 'node_modules/.bin/tsc')} -p .`, folder), '');
  });

  test('opens listeners of its own, forwards a payment, and stops on SIGTERM', async (t) => {
    const bank = await startBank(t);
    const example = startExample(t, {
      PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: bank.baseUrl,
      PENSTOCK_LISTEN_PORT: '0',
      PENSTOCK_ADMIN_PORT: '0',
    });
    await example.waitForOutput('Token of the operator');
    const reply = await call(`http://127.0.0.1:${portIn(example.stdout(), 'API')}`, initiation);
    assert.equal(reply.status, 201);
    assert.equal(bank.payments.length, 1);
    const ready = await fetch(`http://127.0.0.1:${portIn(example.stdout(), 'console')}/health/ready`);
    assert.equal(ready.status, 200);

    example.kill('SIGTERM');
    assert.equal(await example.exitCode(), 0);
    assert.match(example.stdout(), /Stopped\./);
  });

  test('prints every error of an invalid configuration', async (t) => {
    const example = startExample(t, { PENSTOCK_LISTEN_PORT: 'many', PENSTOCK_DEADLINES_WRITE: '20' });
    assert.equal(await example.exitCode(), 78);
    assert.equal(example.stderr().trim().split('\n').length, 2, example.stderr());
    assert.match(example.stderr(), /PENSTOCK_LISTEN_PORT/);
    assert.match(example.stderr(), /PENSTOCK_DEADLINES_WRITE/);
  });
});
