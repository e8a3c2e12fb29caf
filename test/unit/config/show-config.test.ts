/** The effective configuration as a file: complete, with sources, without secrets, and usable as a configuration. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { configChanges } from '../../../src/config/config-changes.ts';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { type LoadedValidConfig, loadConfig } from '../../../src/config/load.ts';
import { withValue } from '../../../src/config/object-path.ts';
import { settings } from '../../../src/config/settings.ts';
import { showConfig } from '../../../src/config/show-config.ts';
import { withFile } from '../../kit/folder.ts';
import { minimalConfig } from './load-text.ts';

function load(text: string, variables: EnvironmentVariables = {}): LoadedValidConfig {
  return withFile(text, (file) => {
    const loaded = loadConfig(file, variables);
    return loaded.kind === 'valid' ? loaded : assert.fail(loaded.errors.join('\n'));
  });
}

/** The line of a setting in the shown configuration, without its indentation. */
function lineOf(name: string, text: string, variables?: EnvironmentVariables): string {
  const lines = showConfig(load(text, variables)).split('\n');
  return (
    lines.find((line) => line.trim().startsWith(`${name}:`))?.trim() ?? assert.fail(`${name} is not shown`)
  );
}

describe('the effective configuration', () => {
  test('shows each value in the units of the file, with its source', () => {
    const text = `${minimalConfig}listen:\n  maxBody: 2097152 B\nshaping: { rate: 100/min }\ncircuit: { failureRate: 12.5% }`;
    assert.equal(lineOf('maxBody', text), 'maxBody: 2MiB # line 3');
    assert.equal(lineOf('rate', text), 'rate: 100/min # as shaping.rate');
    assert.equal(lineOf('failureRate', text), 'failureRate: 12.5% # line 5');
    assert.equal(lineOf('window', text), 'window: 1d # default');
    assert.equal(
      lineOf('publicUrl', text),
      'publicUrl: http://127.0.0.1:8080 # default: from host and port: http://127.0.0.1:8080',
    );
    assert.equal(lineOf('active', text), 'active: sandbox # default: the only one');
    assert.equal(
      lineOf('paymentServices', text),
      'paymentServices: [payments, bulk-payments, periodic-payments] # default',
    );
  });

  test('names the environment variable, and the setting that a default follows', () => {
    const variables = { PENSTOCK_DEADLINES_WRITE: '900ms' };
    const shown = showConfig(load(minimalConfig, variables));
    assert.match(shown, /^ {2}write: 900ms # PENSTOCK_DEADLINES_WRITE$/m);
    assert.match(shown, /^ {2}connect: 450ms # default, because deadlines\.write is 900ms$/m);
  });

  test('contains no secret', () => {
    const hash = 'ab12'.repeat(16);
    const text = `${minimalConfig}clients: [{ name: a, apiKeySha256: ${hash} }]\nadmin: { operators: [{ name: b, tokenSha256: ${hash} }] }`;
    const shown = showConfig(load(text, { PENSTOCK_STATE_REDIS: 'rediss://user:hunter2@redis.test:6379/1' }));
    assert.ok(!shown.includes(hash));
    assert.doesNotMatch(shown, /hunter2|\buser\b/);
    assert.match(shown, /redis: rediss:\/\/redis\.test:6379\/1 # PENSTOCK_STATE_REDIS/);
  });

  /** The same, with every secret masked. */
  const pastedBack = (loaded: LoadedValidConfig) => load(showConfig(loaded));

  test('can be used as a configuration that has the same effect', () => {
    for (const name of ['demo.yaml', 'production.example.yaml']) {
      const loaded = loadConfig(fileURLToPath(new URL(`../../../config/${name}`, import.meta.url)), {});
      assert.ok(loaded.kind === 'valid');
      const changes = configChanges(loaded.config, pastedBack(loaded).config);
      assert.deepEqual(
        changes.filter(({ setting }) => !setting.endsWith('Sha256')),
        [],
      );
    }
  });

  test('shows the URL of PostgreSQL without its password, in such a way that a file may contain it', () => {
    for (const [url, shown] of [
      ['postgres://ann:hunter2@db.example/penstock', 'postgres://ann@db.example/penstock'],
      ['postgres://ann@db.example/penstock?password=hunter2', 'postgres://ann@db.example/penstock'],
      [
        'postgres://ann@db.example/penstock?password=hunter2&sslmode=require',
        'postgres://ann@db.example/penstock?sslmode=require',
      ],
    ]) {
      const redis = { PENSTOCK_STATE_REDIS: 'redis://redis.example:6379/0' };
      const loaded = load(minimalConfig, { ...redis, PENSTOCK_STATE_POSTGRES: url });
      assert.equal(pastedBack(loaded).config.state.postgres, shown);
    }
  });

  test('shows the same again for the shown configuration', () => {
    const text = `${minimalConfig}clients:\n  - { name: a, apiKeySha256: ${'ab12'.repeat(16)} }\n  - { name: b, apiKeySha256: ${'cd34'.repeat(16)} }`;
    const values = (shown: string) => shown.replace(/ *#.*/g, '');
    const loaded = load(text);
    assert.equal(values(showConfig(pastedBack(loaded))), values(showConfig(loaded)));
  });

  test('has the same effect whatever settings with a number are written', () => {
    const numeric = settings.filter(({ schema }) => schema.unit !== undefined || schema.type === 'integer');
    const quantityOf = (unit: string | undefined) => {
      const count = fc.integer({ min: 1, max: 500 });
      if (unit === 'duration') return count.map((ms) => `${ms}00ms`);
      if (unit === 'size') return count.map((kib) => `${kib}MiB`);
      if (unit === 'rate')
        return fc.tuple(count, fc.constantFrom('s', 'min', 'h')).map(([n, per]) => `${n}.5/${per}`);
      if (unit === 'percentage') return count.map((tenths) => `${tenths / 10}%`);
      return count;
    };
    const written = fc
      .constantFrom(...numeric)
      .chain(({ path, schema }) => quantityOf(schema.unit).map((value) => ({ path, value })));
    fc.assert(
      fc.property(fc.array(written, { maxLength: 3 }), (chosen) => {
        const tree = chosen.reduce<unknown>(
          (reduced, { path, value }) =>
            withValue(
              reduced,
              path.map((name) => (name === '*' ? 'a' : name)),
              value,
            ),
          { environments: { a: { baseUrl: 'https://a.test' } }, state: { redis: 'redis://r:6379' } },
        );
        withFile(JSON.stringify(tree), (file) => {
          const loaded = loadConfig(file, {});
          if (loaded.kind === 'invalid') return;
          assert.deepEqual(configChanges(loaded.config, pastedBack(loaded).config), []);
        });
      }),
      { numRuns: 60 },
    );
  });
});
