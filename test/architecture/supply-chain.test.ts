import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isAllowed } from './licences.ts';
import { sources } from './sources.ts';

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
}
type Versions = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const packagesOf = (folder: string) => {
  const lock: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    textOf(join(folder, 'package-lock.json')),
  );
  return Object.entries(lock.packages).filter(([path]) => path !== '');
};
const packages = packagesOf('.');
const project: Readonly<Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Versions>> =
  JSON.parse(textOf('package.json'));

/** The oldest version without a known vulnerability, with its identifier. */
const atLeast: Readonly<Record<string, string>> = {
  'path-to-regexp': '8.4.0', // CVE-2026-4867, -4923, -4926: endless matching
  'http-proxy-middleware': '4.1.1', // CVE-2026-55602, -55603: routing by Host, bodies rewritten
  httpxy: '0.5.5', // GHSA-ggv3-7p47-pfv8: request smuggling
};

describe('the dependencies', () => {
  test('H14: are locked by their hashes, and run no scripts when they are installed', () => {
    assert.deepEqual(
      packages.filter(([, { integrity }]) => !integrity).map(([path]) => path),
      [],
    );
    assert.deepEqual(
      packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path),
      [],
    );
  });

  test('H14: are installed as the lock file says', () => {
    const installed = packages.filter(([path]) => existsSync(join(root, path, 'package.json')));
    assert.ok(installed.length > 100, 'npm ci has been run');
    for (const [path, { version }] of installed) {
      const { scripts = {}, ...said } = JSON.parse(textOf(join(path, 'package.json')));
      assert.equal(said.version, version, path);
      for (const name of ['preinstall', 'install', 'postinstall']) assert.ok(!(name in scripts), path);
      assert.ok(!existsSync(join(root, path, 'binding.gyp')), `${path} would be built`); // npm's own install script
    }
  });

  test('come from any registry: no lock file names a host', () => {
    for (const folder of ['.', 'bench']) {
      for (const [path, { resolved }] of packagesOf(folder)) assert.equal(resolved, undefined, path);
      assert.doesNotMatch(textOf(join(folder, 'package-lock.json')), /"(git|file|link)[+:"]|\.tgz/);
    }
  });

  test('have one exact version each, the same in the lock file', () => {
    const { dependencies, devDependencies, optionalDependencies } = project;
    const locked = new Map(packages);
    for (const [name, version] of Object.entries({
      ...dependencies,
      ...devDependencies,
      ...optionalDependencies,
    })) {
      assert.match(version, /^\d+\.\d+\.\d+$/, name);
      assert.equal(locked.get(`node_modules/${name}`)?.version, version, name);
    }
  });

  test('have only licences that the project allows', () => {
    for (const folder of ['.', 'bench'])
      for (const [path, { license = 'none' }] of packagesOf(folder))
        assert.ok(isAllowed(license), `${path}: ${license}`);
    assert.ok(isAllowed('(GPL-3.0-only OR MIT)'));
    for (const other of [
      'none',
      'GPL-3.0-only',
      'MIT AND GPL-3.0-only',
      'SEE LICENSE IN x',
      'UNLICENSED',
      '',
    ])
      assert.ok(!isAllowed(other), other);
  });

  test('are the ones that ADR 20 explains', () => {
    const page = textOf('docs/architecture/adr/0020-dependencies.md');
    const [, serving = '', developing = ''] = page.split(/^\| (?=package |for development )/m);
    const namesIn = (table: string) =>
      [...table.matchAll(/^\| ([^|]+) \| (?=\S)/gm)]
        .flatMap(([, names = '']) => names.split(', '))
        .toSorted();
    const { dependencies, optionalDependencies, devDependencies } = project;
    assert.deepEqual(namesIn(serving), Object.keys({ ...dependencies, ...optionalDependencies }).toSorted());
    assert.deepEqual(namesIn(developing), Object.keys(devDependencies).toSorted());
  });

  test('B7, B8: are newer than the versions with known vulnerabilities', () => {
    for (const [name, oldest] of Object.entries(atLeast)) {
      const versions = packages.filter(([path]) => path.endsWith(`node_modules/${name}`));
      assert.ok(versions.length > 0, name);
      for (const [path, { version }] of versions) {
        const older = version.localeCompare(oldest, 'en', { numeric: true }) < 0;
        assert.ok(!older, `${path} is ${version}, older than ${oldest}`);
      }
    }
  });

  test('B8: are not used where a request would decide about the target', () => {
    for (const { path, text } of sources) assert.doesNotMatch(text, /fixRequestBody|pathFilter/, path);
  });
});
