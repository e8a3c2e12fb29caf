import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { adminToken, configSource, loadConfig } from '../../../src/config/load.ts';
import type { StandardSettings } from '../../../src/config/schema.ts';
import type { PathRules } from '../../../src/pis/operations.ts';
import type { Environment } from '../../../src/request/messages.ts';
import { withFile } from '../../kit/folder.ts';
import { loadValid, minimalConfig } from './load-text.ts';

const shipped = (name: string) => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url));

describe('the configuration', () => {
  test('comes from the command line, else from PENSTOCK_CONFIG, else from nowhere', () => {
    assert.equal(configSource('a.yaml', { PENSTOCK_CONFIG: 'b.yaml' }), 'a.yaml');
    assert.equal(configSource(undefined, { PENSTOCK_CONFIG: 'b.yaml' }), 'b.yaml');
    assert.equal(configSource(undefined, { PENSTOCK_CONFIG: '' }), undefined);
  });

  test('of a file that cannot be read is one fault that says what to do', () => {
    withFile('', (file) => {
      const missing = join(file, '..', 'nowhere.yaml');
      assert.deepEqual(loadConfig(missing, {}), {
        kind: 'faulty',
        faults: [
          `${missing}: cannot be read (ENOENT); name a readable file with --config FILE or PENSTOCK_CONFIG`,
        ],
      });
    });
  });

  test('without a file is made of defaults and variables alone', () => {
    assert.equal(
      loadConfig(undefined, { PENSTOCK_ENVIRONMENTS_A_BASE_URL: 'https://a.example' }).kind,
      'valid',
    );
    const nothing = loadConfig(undefined, {});
    assert.match(
      nothing.kind === 'faulty' ? (nothing.faults[0] ?? '') : '',
      /^configuration environments: at least one/,
    );
  });

  test('with a section that is empty has the defaults there', () => {
    assert.deepEqual(loadValid(`${minimalConfig}deadlines:\n  # read: 15s\n`).deadlines, {
      connect: 2000,
      status: 10_000,
      read: 15_000,
      write: 35_000,
    });
  });

  test('fits the rules of paths and the environments of the flow', () => {
    const config = loadValid('environments: { a: { baseUrl: https://a.example:8443/psd2/v2/ } }');
    const rules: PathRules = config.standard;
    const environments: readonly Environment[] = config.environments.all;
    assert.equal(rules.segment, 'berlingroup');
    assert.deepEqual(
      [environments[0]?.origin, environments[0]?.basePath],
      ['https://a.example:8443', '/psd2/v2'],
    );
  });

  test('takes none to several path segments as the standard, and no slashes at its ends', () => {
    const segmentOf = (segment: string): StandardSettings['segment'] =>
      loadValid(`${minimalConfig}standard: { segment: '${segment}' }`).standard.segment;
    assert.deepEqual(['', 'xs2a', 'psd2/xs2a'].map(segmentOf), ['', 'xs2a', 'psd2/xs2a']);
    for (const wrong of ['/', '/a', 'a/', 'a//b', '..', 'a b', 'a%2Fb'])
      assert.throws(() => segmentOf(wrong), wrong);
  });

  test('gives TPP systems the address that the gateway listens on, unless another is public', () => {
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

  test('lets an environment override parts of the shaping, and keeps the rest', () => {
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

  test('gives a client its name as tenant and all environments, unless said otherwise', () => {
    const text = `${minimalConfig}clients: [{ name: a, apiKeySha256: ${'a'.repeat(64)} }]`;
    const [client] = loadValid(text).clients;
    assert.deepEqual([client?.tenant, client?.environments], ['a', ['sandbox']]);
  });
});

describe('the shipped files', () => {
  for (const name of ['demo.yaml', 'production.example.yaml'])
    test(`${name} is valid`, () => assert.equal(loadConfig(shipped(name), {}).kind, 'valid'));
});

describe('the token of the operator "admin"', () => {
  const adminWith = (file: string) =>
    loadValid(`${minimalConfig}admin: { tokenFile: ${JSON.stringify(file)} }`).admin;

  test('is read from its file without the line break at its end, unless the variable holds one', () => {
    withFile('hunter2\n', (file) => {
      assert.equal(adminToken(adminWith(file), {}), 'hunter2');
      assert.equal(adminToken(adminWith(file), { PENSTOCK_ADMIN_TOKEN: 'other' }), 'other');
    });
  });

  test('is absent if nobody set one', () => {
    assert.equal(adminToken(loadValid(minimalConfig).admin, {}), undefined);
  });

  test('is never empty', () => {
    withFile('\n', (file) =>
      assert.throws(() => adminToken(adminWith(file), {}), /the secret in .* is empty/),
    );
  });
});
