/** What a reload changes, and what needs a restart. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  applicableOnReload,
  compareConfigs,
  describeChange,
  restartSettings,
} from '../../../src/config/config-changes.ts';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { loadValid, minimalConfig } from './load-text.ts';

const hash = (digits: string) => digits.repeat(64 / digits.length);

/** The lines for operators: what a reload changes, and what needs a restart. */
function changesBetween(before: string, after: string, variables: EnvironmentVariables = {}) {
  const { changes, restartRequired } = compareConfigs(
    loadValid(before, variables),
    loadValid(after, variables),
  );
  return [changes.map(describeChange), restartRequired.map(describeChange)];
}

describe('the comparison of two configurations', () => {
  test('finds nothing in texts that have the same effect', () => {
    const clients = [
      `{ name: a, apiKeySha256: ${hash('ab12')} }`,
      `{ name: b, apiKeySha256: ${hash('cd34')} }`,
    ];
    const before = `${minimalConfig}deadlines: { write: 60s }\nclients: [${clients.join(', ')}]`;
    const after = `deadlines: { write: 1min, read: 15s }\nclients: [${clients.toReversed().join(', ')}]\n${minimalConfig}`;
    assert.deepEqual(changesBetween(before, after), [[], []]);
  });

  test('shows both values in the units of the file, and entries of lists by their names', () => {
    const before = `${minimalConfig}deadlines: { write: 30s }\nclients: [{ name: a, apiKeySha256: ${hash('ab12')} }, { name: b, apiKeySha256: ${hash('cd34')}, quota: { rate: 5/s } }]`;
    const after = `${minimalConfig}shaping: { rate: 90/min }\nclients: [{ name: b, apiKeySha256: ${hash('cd34')}, quota: { rate: 6/s } }, { name: c, apiKeySha256: ${hash('ef56')} }]`;
    assert.deepEqual(changesBetween(before, after), [
      [
        'clients.a: removed',
        'clients.b.quota.rate: 5/s -> 6/s',
        'clients.c: added',
        'deadlines.write: 30s -> 35s',
        'shaping.rate: 50/s -> 90/min',
      ],
      [],
    ]);
  });

  test('shows a change in one environment, and the addition of another one', () => {
    const before = 'environments: { active: a, a: { baseUrl: https://a.test } }';
    const after =
      'environments: { active: a, a: { baseUrl: https://a.test, deadlines: { write: 20s } }, b: { baseUrl: https://b.test } }';
    assert.deepEqual(changesBetween(before, after), [
      ['environments.a.deadlines.write: 35s -> 20s', 'environments.b: added'],
      [],
    ]);
  });

  test('never shows a secret', () => {
    const client = (digits: string) =>
      `${minimalConfig}clients: [{ name: a, apiKeySha256: ${hash(digits)} }]`;
    assert.deepEqual(changesBetween(client('ab12'), client('cd34')), [
      ['clients.a.apiKeySha256: changed (secret)'],
      [],
    ]);
    const withPassword = (password: string) =>
      loadValid(minimalConfig, { PENSTOCK_STATE_REDIS: `redis://:${password}@redis.test:6379` });
    const { restartRequired } = compareConfigs(withPassword('hunter2'), withPassword('hunter3'));
    assert.deepEqual(restartRequired.map(describeChange), ['state.redis: changed (secret)']);
    assert.ok(!JSON.stringify(restartRequired).includes('hunter'));
  });

  test('applies environment variables to both', () => {
    const variables = { PENSTOCK_DEADLINES_WRITE: '20s' };
    assert.deepEqual(changesBetween(`${minimalConfig}deadlines: { write: 30s }`, minimalConfig, variables), [
      [],
      [],
    ]);
  });

  test('says that environments.active has no effect on a running gateway', () => {
    const of = (active: string) =>
      `environments: { active: ${active}, a: { baseUrl: https://a.test }, b: { baseUrl: https://b.test } }`;
    assert.deepEqual(changesBetween(of('a'), of('b')), [
      ['environments.active: a -> b (used only if the state is new; penstock environment use switches)'],
      [],
    ]);
  });
});

describe('a reload', () => {
  const changed = `listen: { host: 127.0.0.2, port: 1, maxConnections: 9, reusePort: true, maxBody: 1B, trustedProxies: [10.0.0.1], tls: { certFile: a, keyFile: b } }
admin: { host: 127.0.0.3, port: 2, tls: { certFile: a, keyFile: b }, hosts: [h], tokenFile: t, operators: [{ name: o, tokenSha256: ${hash('ab12')} }], trustedProxies: [10.0.0.1], proxySignIn: { roles: { read: any } }, sessionTtl: 1h, oidc: { issuer: https://i.test, clientId: c, roles: { read: any } } }
standard: { segment: x, paymentServices: any, paymentProducts: [y], authorisationTypes: any }
clients: [{ name: c, apiKeySha256: ${hash('ab12')} }]
environments: { active: s, s: { baseUrl: https://s.test, probePath: /p, deadlines: { read: 9s } } }
state: { postgres: "postgres://p@h/d", redis: "redis://r:6379", prefix: "p:", timeout: 1s, durability: required, afterLoss: resume, encryptionKeyFile: k, confirm: { replicas: 1, timeout: 600ms } }
idempotency: { window: 2h, wait: 1s, lateAnswer: 1min, maxStoredAnswer: 9KiB, maxStoredPerTenant: 2MiB, memory: 2MiB, ifStateFails: allow }
payments: { rememberFor: 5h }
statusCache: { enabled: false }
notifications: { maxWait: 1s, publicUrl: "https://n.test", listen: { port: 3 } }
deadlines: { connect: 1s, status: 9s, read: 14s, write: 34s }
upstream: { maxSockets: 200 }
circuit: { failureRate: 10% }
shaping: { rate: 1/s, expectedInstances: 2 }
log: { level: warn, format: text }
tracing: { otlpUrl: "http://127.0.0.1:4318", sample: 1% }
`;

  test('needs a restart exactly for the settings that the documentation lists', () => {
    const { changes, restartRequired } = compareConfigs(loadValid(minimalConfig), loadValid(changed));
    const listed = restartSettings.map((setting) => setting.replace(/ .*/, ''));
    const isListed = (setting: string) =>
      setting !== 'state.afterLoss' && listed.some((one) => setting === one || setting.startsWith(`${one}.`));
    const following = ['listen.publicUrl', 'listen.errorPageUrl', 'admin.publicUrl'];
    assert.deepEqual(
      restartRequired.filter(({ setting }) => !isListed(setting) && !following.includes(setting)),
      [],
    );
    assert.deepEqual(
      changes.filter(({ setting }) => isListed(setting)),
      [],
    );
    for (const one of listed)
      assert.ok(
        restartRequired.some(({ setting }) => setting === one || setting.startsWith(`${one}.`)),
        one,
      );
    assert.ok(changes.some(({ setting }) => setting === 'state.afterLoss'));
  });

  test('leaves URLs that follow a listener at the address that it still has', () => {
    const next = loadValid(`${minimalConfig}listen: { port: 9999 }`);
    assert.equal(
      applicableOnReload(next, loadValid(minimalConfig)).listen.publicUrl,
      'http://127.0.0.1:8080',
    );
    const moved = loadValid(`${minimalConfig}admin: { port: 9999 }`);
    assert.equal(
      applicableOnReload(moved, loadValid(minimalConfig)).listen.errorPageUrl,
      'http://127.0.0.1:9090/errors.html',
    );
    assert.equal(
      applicableOnReload(moved, loadValid(minimalConfig)).admin.publicUrl,
      'http://127.0.0.1:9090',
    );
    const written = loadValid(`${minimalConfig}listen: { port: 9999, publicUrl: https://pay.test }`);
    assert.equal(applicableOnReload(written, loadValid(minimalConfig)).listen.publicUrl, 'https://pay.test');
  });
});
