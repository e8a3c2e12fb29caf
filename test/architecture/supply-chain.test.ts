import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { allowedInDevelopment, isAllowed } from './licences.ts';
import { sources } from './sources.ts';

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
}
type Versions = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const lockedIn = (folder: string) => {
  const lock: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    textOf(join(folder, 'package-lock.json')),
  );
  return Object.entries(lock.packages).filter(([path]) => path !== '');
};

/** The folder with the Node for development, and the link to it: the only entries that are no packages of a registry. */
const nodeFolder = 'tools/node';
const nodeLink = 'node_modules/development-node';
const packagesOf = (folder: string) =>
  lockedIn(folder).filter(([path]) => path !== nodeFolder && path !== nodeLink);
const packages = packagesOf('.');
const { dependencies, devDependencies }: Readonly<Record<'dependencies' | 'devDependencies', Versions>> =
  JSON.parse(textOf('package.json'));
const { optionalDependencies: nodes }: { readonly optionalDependencies: Versions } = JSON.parse(
  textOf(`${nodeFolder}/package.json`),
);
const { 'development-node': ownNode, ...developing } = devDependencies;

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
      for (const [path, { resolved }] of lockedIn(folder))
        assert.equal(resolved, path === nodeLink ? nodeFolder : undefined, path);
      const text = textOf(join(folder, 'package-lock.json')).replace(`"file:${nodeFolder}"`, '');
      assert.doesNotMatch(text, /"(git|file)[+:]|\.tgz/);
    }
    const links = ['.', 'bench'].flatMap(lockedIn).filter(([, { link }]) => link);
    assert.deepEqual(
      links.map(([path]) => path),
      [nodeLink],
    );
  });

  test('have one exact version each, the same in the lock file', () => {
    const locked = new Map(packages);
    assert.equal(ownNode, `file:${nodeFolder}`);
    for (const [name, version] of Object.entries({ ...dependencies, ...developing, ...nodes })) {
      assert.match(version, /^\d+\.\d+\.\d+$/, name);
      assert.equal(locked.get(`node_modules/${name}`)?.version, version, name);
    }
  });

  test('have only licences that the project allows', () => {
    for (const folder of ['.', 'bench'])
      for (const [path, { license = 'none', dev = false }] of packagesOf(folder)) {
        const isException = dev && allowedInDevelopment[path.replace('node_modules/', '')] === license;
        assert.ok(isAllowed(license) || isException, `${path}: ${license}`);
      }
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

  test('contain Node for development only: an installed package does not get a second one', () => {
    const installed = packages.filter(([path]) => path.startsWith('node_modules/node-'));
    assert.deepEqual(
      installed.map(([path, { dev, optional }]) => ({ path, dev, optional })),
      Object.keys(nodes).map((name) => ({ path: `node_modules/${name}`, dev: true, optional: true })),
    );
  });

  test('are the ones that ADR 20 explains', () => {
    const page = textOf('docs/architecture/adr/0020-dependencies.md');
    const [, serving = '', forDevelopment = ''] = page.split(/^\| (?=package |for development )/m);
    const namesIn = (table: string) =>
      [...table.matchAll(/^\| ([^|]+) \| (?=\S)/gm)]
        .flatMap(([, names = '']) => names.split(', '))
        .toSorted();
    assert.deepEqual(namesIn(serving), Object.keys(dependencies).toSorted());
    assert.deepEqual(namesIn(forDevelopment), Object.keys({ ...developing, ...nodes }).toSorted());
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
    // The default path filter parses the path as a URL. One that accepts every request decides nothing.
    const deciding = /fixRequestBody|pathFilter(?!: \(\) => true,)/;
    for (const { path, text } of sources) assert.doesNotMatch(text, deciding, path);
  });
});
