/** Loading the configuration from a file and environment variables. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  adminToken,
  configSource,
  type LoadedConfig,
  loadAdminSettings,
  loadConfig,
} from '../../../src/config/load.ts';
import { longestDeadlines } from '../../../src/config/resolve-defaults.ts';
import type { StandardSettings } from '../../../src/config/schema.ts';
import type { PathRules } from '../../../src/pis/operations.ts';
import type { Environment } from '../../../src/request/messages.ts';
import { withFile } from '../../kit/folder.ts';
import { loadValid, minimalConfig } from './load-text.ts';

const shippedFile = (name: string) => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url));

const errorOf = (loaded: LoadedConfig) => (loaded.kind === 'invalid' ? loaded.errors.join('\n') : '');

describe('loading a configuration', () => {
  test('reads the file of the command line, or else the file of PENSTOCK_CONFIG', () => {
    assert.equal(configSource('a.yaml', { PENSTOCK_CONFIG: 'b.yaml' }), 'a.yaml');
    assert.equal(configSource(undefined, { PENSTOCK_CONFIG: 'b.yaml' }), 'b.yaml');
    assert.equal(configSource(undefined, { PENSTOCK_CONFIG: '' }), undefined);
  });

  test('reports an unreadable file as a single error that says what to do', () => {
    withFile('', (file) => {
      const missing = join(file, '..', 'nowhere.yaml');
      assert.deepEqual(loadConfig(missing, {}), {
        kind: 'invalid',
        errors: [`ENOENT: ${missing}; correct the path of the configuration file`],
        warnings: [],
      });
    });
  });

  test('loads defaults and environment variables without a file', () => {
    assert.equal(
      loadConfig(undefined, { PENSTOCK_ENVIRONMENTS_A_BASE_URL: 'https://a.example' }).kind,
      'valid',
    );
    const incomplete = loadConfig(undefined, { PENSTOCK_LISTEN_PORT: '1' });
    assert.match(errorOf(incomplete), /^configuration environments: no environment is configured/);
  });

  test('says how to name a configuration if there is neither a file nor a variable', () => {
    const empty = loadConfig(undefined, { PENSTOCK_ADMIN_TOKEN: 'x', PENSTOCK_CONFIG: '' });
    assert.match(errorOf(empty), /^no configuration file: name one with --config FILE or PENSTOCK_CONFIG, /);
  });

  test('reports a file that cannot be a configuration: a folder, another encoding, or a huge one', () => {
    withFile('', (file) => {
      const folder = join(file, '..');
      assert.equal(
        errorOf(loadConfig(folder, {})),
        `EISDIR: ${folder}; correct the path of the configuration file`,
      );
      writeFileSync(file, Buffer.from(minimalConfig, 'utf16le'));
      assert.match(errorOf(loadConfig(file, {})), /: not a text in UTF-8; save it in this encoding/);
      writeFileSync(file, Buffer.from([0x61, 0x3a, 0x20, 0xff]));
      assert.match(errorOf(loadConfig(file, {})), /: not a text in UTF-8/);
      writeFileSync(file, Buffer.alloc(16 * 1024 * 1024 + 1, '#'));
      assert.match(errorOf(loadConfig(file, {})), /: larger than 16MiB/);
    });
  });

  test('reads files of Windows: with a byte order mark, and with CR LF', () => {
    const text = `${minimalConfig}listen: { port: 81 }\ndeadlines:\n  write: 20s\n`;
    const config = loadValid(`\uFEFF${text.replaceAll('\n', '\r\n')}`);
    assert.deepEqual([config.listen.port, config.deadlines.write], [81, 20_000]);
  });

  test('resolves anchors, aliases and merge keys', () => {
    const config = loadValid(`environments:
  active: sandbox
  sandbox: &bank
    baseUrl: https://sandbox.bank.test/psd2
    deadlines: { read: 20s }
  production:
    <<: *bank
    baseUrl: https://api.bank.test/psd2
`);
    assert.deepEqual(
      config.environments.all.map(({ name, origin, deadlines }) => [name, origin, deadlines.read]),
      [
        ['sandbox', 'https://sandbox.bank.test', 20_000],
        ['production', 'https://api.bank.test', 20_000],
      ],
    );
  });

  test('uses the defaults for an empty section', () => {
    assert.deepEqual(loadValid(`${minimalConfig}deadlines:\n  # read: 15s\n`).deadlines, {
      connect: 2000,
      status: 10_000,
      read: 15_000,
      write: 35_000,
    });
  });

  test('produces settings that are assignable to PathRules and Environment', () => {
    const config = loadValid('environments: { a: { baseUrl: https://a.example:8443/psd2/v2/ } }');
    const rules: PathRules = config.standard;
    const environments: readonly Environment[] = config.environments.all;
    assert.equal(rules.segment, 'berlingroup');
    assert.deepEqual(
      [environments[0]?.origin, environments[0]?.basePath],
      ['https://a.example:8443', '/psd2/v2'],
    );
  });

  test('accepts zero or more path segments as the standard segment, without slashes at the ends', () => {
    const segmentOf = (segment: string): StandardSettings['segment'] =>
      loadValid(`${minimalConfig}standard: { segment: '${segment}' }`).standard.segment;
    assert.deepEqual(['', 'xs2a', 'psd2/xs2a'].map(segmentOf), ['', 'xs2a', 'psd2/xs2a']);
    for (const wrong of ['/', '/a', 'a/', 'a//b', '..', 'a b', 'a%2Fb'])
      assert.throws(() => segmentOf(wrong), wrong);
  });

  test('derives publicUrl from the listener unless it is set', () => {
    assert.equal(loadValid(minimalConfig).listen.publicUrl, 'http://127.0.0.1:8080');
    assert.equal(
      loadValid(`${minimalConfig}listen: { host: '::', port: 1 }`).listen.publicUrl,
      'http://127.0.0.1:1',
    );
    assert.equal(
      loadValid(`${minimalConfig}listen: { host: '::1', port: 1 }`).listen.publicUrl,
      'http://[::1]:1',
    );
    assert.equal(
      loadValid(`${minimalConfig}listen: { publicUrl: https://a.example/x/ }`).listen.publicUrl,
      'https://a.example/x',
    );
  });

  test('derives errorPageUrl from the admin listener if TPP systems are on the same machine', () => {
    const errorPageUrlOf = (text: string) => loadValid(`${minimalConfig}${text}`).listen.errorPageUrl;
    assert.equal(errorPageUrlOf(''), 'http://127.0.0.1:9090/errors.html');
    assert.equal(errorPageUrlOf("admin: { host: '::1', port: 1 }"), 'http://[::1]:1/errors.html');
    for (const elsewhere of [
      'listen: { publicUrl: https://a.example }',
      'listen: { host: 10.0.0.1 }',
      'admin: { port: 0 }',
    ])
      assert.equal(errorPageUrlOf(elsewhere), null, elsewhere);
    assert.equal(errorPageUrlOf('listen: { errorPageUrl: null }'), null);
    assert.equal(
      errorPageUrlOf('listen: { publicUrl: https://a.example, errorPageUrl: https://a.example/errors/ }'),
      'https://a.example/errors',
    );
  });

  test('merges the shaping of an environment with the global shaping', () => {
    const config = loadValid(
      'shaping: { rate: 20/s, maxWait: { read: 2s } }\n' +
        'environments: { a: { baseUrl: https://a.example, shaping: { burst: 7, maxWait: { write: 5s } } } }',
    );
    assert.deepEqual(config.environments.all[0]?.shaping, {
      ...config.shaping,
      burst: 7,
      maxWait: { write: 5000, read: 2000, status: 1000 },
    });
    assert.equal(config.environments.all[0]?.shaping.rate, 20);
  });

  test('merges the deadlines of an environment with the global ones, and finds the longest of each lane', () => {
    const config = loadValid(
      'deadlines: { read: 20s }\n' +
        'environments: { active: a, a: { baseUrl: https://a.example, deadlines: { write: 50s, status: 5s } }, b: { baseUrl: https://b.example } }',
    );
    assert.deepEqual(
      config.environments.all.map(({ deadlines }) => deadlines),
      [
        { connect: 2_000, status: 5_000, read: 20_000, write: 50_000 },
        { connect: 2_000, status: 10_000, read: 20_000, write: 35_000 },
      ],
    );
    // The claim of an X-Request-ID is stored for the longest one: it must not expire before its request.
    assert.deepEqual(longestDeadlines(config), { status: 10_000, read: 20_000, write: 50_000 });
  });

  test('gives a client its name as tenant and all environments by default', () => {
    const text = `${minimalConfig}clients: [{ name: a, apiKeySha256: ${'a'.repeat(64)} }]`;
    const [client] = loadValid(text).clients;
    assert.deepEqual([client?.tenant, client?.environments], ['a', ['sandbox']]);
  });
});

describe('the shipped configuration files', () => {
  for (const name of ['demo.yaml', 'production.example.yaml'])
    test(`${name} is a valid configuration`, () =>
      assert.equal(loadConfig(shippedFile(name), {}).kind, 'valid'));
});

describe('the token of the operator "admin"', () => {
  const adminWith = (file: string) =>
    loadValid(`${minimalConfig}admin: { tokenFile: ${JSON.stringify(file)} }`).admin;

  test('reads the admin token from the environment variable, or else from its file without the final line break', () => {
    withFile('hunter2\n', (file) => {
      assert.equal(adminToken(adminWith(file), {}), 'hunter2');
      assert.equal(adminToken(adminWith(file), { PENSTOCK_ADMIN_TOKEN: 'other' }), 'other');
    });
  });

  test('returns no admin token if neither the variable nor the file is set', () => {
    assert.equal(adminToken(loadValid(minimalConfig).admin, {}), undefined);
  });

  test('refuses an empty token file', () => {
    withFile('\n', (file) =>
      assert.throws(() => adminToken(adminWith(file), {}), /the secret in .* is empty/),
    );
  });
});

describe('the settings of the admin listener', () => {
  test('are loaded although another section is invalid, and from variables if the file cannot be read', () => {
    withFile('admin: { port: 9191 }\nlisten: { port: nowhere }\n', (file) => {
      assert.equal(loadAdminSettings(file, {}).port, 9191);
      assert.equal(loadAdminSettings(file, { PENSTOCK_ADMIN_PORT: '9292' }).port, 9292);
      writeFileSync(file, 'admin: [');
      assert.equal(loadAdminSettings(file, { PENSTOCK_ADMIN_PORT: '9292' }).port, 9292);
      writeFileSync(file, 'admin: { port: nowhere }');
      assert.equal(loadAdminSettings(file, {}).port, 9090);
    });
    assert.equal(loadAdminSettings('/nowhere/penstock.yaml', {}).port, 9090);
  });
});
