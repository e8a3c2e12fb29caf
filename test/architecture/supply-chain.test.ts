import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { sources } from './sources.ts';

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
}

const root = join(import.meta.dirname, '../..');
const lock: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
  readFileSync(join(root, 'package-lock.json'), 'utf8'),
);
const packages = Object.entries(lock.packages).filter(([path]) => path !== '');

/** The oldest that is free of a known hole, each with where that is told. */
const atLeast: Readonly<Record<string, string>> = {
  'path-to-regexp': '8.4.0', // CVE-2026-4867, -4923, -4926: endless matching
  'http-proxy-middleware': '4.1.1', // CVE-2026-55602, -55603: routing by Host, bodies written anew
  httpxy: '0.5.5', // GHSA-ggv3-7p47-pfv8: request smuggling
};

describe('what others have written', () => {
  test('H14: is locked by its hash, and none of it runs when it is installed', () => {
    assert.deepEqual(
      packages.filter(([, { integrity }]) => !integrity).map(([path]) => path),
      [],
    );
    assert.deepEqual(
      packages.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path),
      [],
    );
  });

  test('B7, B8: is new enough where old versions have holes', () => {
    for (const [name, oldest] of Object.entries(atLeast)) {
      const versions = packages.filter(([path]) => path.endsWith(`node_modules/${name}`));
      assert.ok(versions.length > 0, name);
      for (const [path, { version }] of versions) {
        const older = version.localeCompare(oldest, 'en', { numeric: true }) < 0;
        assert.ok(!older, `${path} is ${version}, older than ${oldest}`);
      }
    }
  });

  test('B8: is not used where it decides by what a TPP has sent', () => {
    for (const { path, text } of sources) assert.doesNotMatch(text, /fixRequestBody|pathFilter/, path);
  });
});
