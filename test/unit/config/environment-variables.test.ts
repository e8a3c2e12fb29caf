/** Environment variables that override settings of the file. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { variableName } from '../../../src/config/environment-variables.ts';
import { settings } from '../../../src/config/settings.ts';
import { errorsIn, loadValid, minimalConfig } from './load-text.ts';

describe('environment variables', () => {
  test('overrides the value in the file', () => {
    const config = loadValid(`${minimalConfig}listen: { port: 1234, host: 127.0.0.2 }`, {
      PENSTOCK_LISTEN_PORT: '4321',
    });
    assert.deepEqual([config.listen.port, config.listen.host], [4321, '127.0.0.2']);
  });

  test('replaces an invalid value in the file', () => {
    assert.equal(
      loadValid(`${minimalConfig}listen: { port: many }`, { PENSTOCK_LISTEN_PORT: '1' }).listen.port,
      1,
    );
  });

  test('has a unique variable for every setting', () => {
    const names = settings.map(({ path }) => variableName(path));
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.match(name, /^PENSTOCK_[A-Z0-9_]+(<NAME>[A-Z0-9_]+)?$/);
  });

  test('creates an environment that the file does not contain', () => {
    const config = loadValid('', {
      PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: 'https://a.example/psd2',
      PENSTOCK_ENVIRONMENTS_SANDBOX_TLS_CA_FILE: '/ca.pem',
      PENSTOCK_ENVIRONMENTS_SANDBOX_SHAPING_MAX_WAIT_WRITE: '7s',
    });
    const [sandbox] = config.environments.all;
    assert.equal(config.environments.active, 'sandbox');
    assert.deepEqual(
      [sandbox?.name, sandbox?.basePath, sandbox?.tls?.caFile],
      ['sandbox', '/psd2', '/ca.pem'],
    );
    assert.equal(sandbox?.shaping.maxWait.write, 7000);
  });

  test('overrides settings of an environment whose name contains hyphens', () => {
    const text = 'environments: { pre-prod: { baseUrl: https://a.example } }';
    const config = loadValid(text, { PENSTOCK_ENVIRONMENTS_PRE_PROD_BASE_URL: 'https://b.example' });
    assert.deepEqual(
      config.environments.all.map(({ name, origin }) => [name, origin]),
      [['pre-prod', 'https://b.example']],
    );
  });

  test('parses lists separated by commas, the word any, lists of mappings in JSON, and null as an empty string', () => {
    const config = loadValid(`${minimalConfig}state: { file: x }`, {
      PENSTOCK_STANDARD_PAYMENT_PRODUCTS: 'sepa-credit-transfers, target-2-payments',
      PENSTOCK_STANDARD_PAYMENT_SERVICES: 'any',
      PENSTOCK_LISTEN_TRUSTED_PROXIES: '',
      PENSTOCK_ADMIN_OPERATORS: JSON.stringify([
        { name: 'ann', tokenSha256: '1'.repeat(64), role: 'operate' },
      ]),
      PENSTOCK_STATE_FILE: '',
      PENSTOCK_STATUS_CACHE_ENABLED: 'false',
    });
    assert.deepEqual(config.standard.paymentProducts, ['sepa-credit-transfers', 'target-2-payments']);
    assert.equal(config.standard.paymentServices, 'any');
    assert.deepEqual(config.listen.trustedProxies, []);
    assert.equal(config.admin.operators[0]?.role, 'operate');
    assert.equal(config.state.file, null);
    assert.equal(config.statusCache.enabled, false);
  });

  test('accepts the password of a single Redis or of sentinels', () => {
    const url = 'rediss://user:hunter2@redis.example:6379/0';
    assert.deepEqual(loadValid(minimalConfig, { PENSTOCK_STATE_REDIS: url }).state.redis, {
      kind: 'single',
      url,
    });
    assert.deepEqual(
      loadValid(minimalConfig, { PENSTOCK_STATE_REDIS: JSON.stringify({ sentinels: [url], name: 'main' }) })
        .state.redis,
      { kind: 'sentinels', urls: [url], name: 'main' },
    );
  });

  test('validates variables like the file, and names the variable instead of a line', () => {
    assert.deepEqual(
      errorsIn(minimalConfig, {
        PENSTOCK_LISTEN_PORT: '80a',
        PENSTOCK_DEADLINES_READ: '15',
        PENSTOCK_STATUS_CACHE_ENABLED: 'yes',
        PENSTOCK_CLIENTS: '[{"name":"a"}]',
        PENSTOCK_ENVIRONMENTS_STAGING_STANDARD_VERSION: '1.3.6',
      }),
      [
        'PENSTOCK_LISTEN_PORT listen.port: expected an integer',
        'PENSTOCK_ENVIRONMENTS_STAGING_STANDARD_VERSION environments.staging.baseUrl: required; expected a URL such as https://api.bank.example/psd2',
        'PENSTOCK_STATUS_CACHE_ENABLED statusCache.enabled: expected true or false, not yes, no, on or off',
        'PENSTOCK_DEADLINES_READ deadlines.read: expected a duration such as 500ms, 10s, 2min, 24h or 400d; add the unit to the number',
        'PENSTOCK_CLIENTS clients[0]: the client has no credential; set apiKeySha256 or certificateSha256',
      ],
    );
  });

  test('refuses a variable that names no setting, with a suggestion', () => {
    assert.deepEqual(errorsIn(minimalConfig, { PENSTOCK_LISTN_PORT: '1', PENSTOCK_XYZZY: 'hunter2' }), [
      'PENSTOCK_LISTN_PORT unknown environment variable; did you mean PENSTOCK_LISTEN_PORT?',
      'PENSTOCK_XYZZY unknown environment variable; docs/configuration.md lists the variables',
    ]);
  });

  test('suggests the variables of the environments in the file, and those that end with the same words', () => {
    for (const [name, suggested] of [
      ['PENSTOCK_ENVIRONMENTS_SANDBOX_BASEURL', 'PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL'],
      ['PENSTOCK_BASE_URL', 'PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL'],
      ['PENSTOCK_PORT', 'PENSTOCK_LISTEN_PORT or PENSTOCK_ADMIN_PORT'],
      ['PENSTOCK_REDIS', 'PENSTOCK_STATE_REDIS'],
      ['PENSTOCK_TOKEN', 'PENSTOCK_ADMIN_TOKEN'],
    ] as const)
      assert.deepEqual(errorsIn(minimalConfig, { [name]: '1' }), [
        `${name} unknown environment variable; did you mean ${suggested}?`,
      ]);
    const banks = ['a', 'b', 'c', 'd'].map((name) => `${name}: { baseUrl: https://${name}.example }`);
    assert.match(
      errorsIn(`environments: { active: a, ${banks.join(', ')} }`, { PENSTOCK_BASE_URL: '1' }).join(),
      /docs\/configuration\.md lists the variables$/,
    );
  });

  test('ignores variables of other programs and those that are not settings', () => {
    assert.deepEqual(
      errorsIn(minimalConfig, { PATH: '/bin', PENSTOCK_CONFIG: 'x', PENSTOCK_ADMIN_TOKEN: 'y' }),
      [],
    );
  });

  test('ignores variables that Kubernetes sets for a service called penstock', () => {
    const config = loadValid(minimalConfig, {
      PENSTOCK_SERVICE_HOST: '10.0.0.1',
      PENSTOCK_SERVICE_PORT: '8080',
      PENSTOCK_SERVICE_PORT_HTTP: '8080',
      PENSTOCK_PORT: 'tcp://10.0.0.1:8080',
      PENSTOCK_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
      PENSTOCK_PORT_8080_TCP_ADDR: '10.0.0.1',
      PENSTOCK_ADMIN_PORT: 'tcp://10.0.0.1:9090',
    });
    assert.equal(config.admin.port, 9090);
  });

  test('reports errors for variables with arbitrary content, and never throws', () => {
    const names = settings.map(({ path }) => variableName(path).replace('<NAME>', 'A'));
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.oneof(fc.string(), fc.json(), fc.constantFrom('constructor', '__proto__')),
        (name, text) => {
          for (const error of errorsIn(minimalConfig, { [name]: text }))
            assert.match(error, /^(PENSTOCK_\w+|:\d+) /);
        },
      ),
    );
  });
});
