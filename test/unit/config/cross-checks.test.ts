/** Settings that contradict each other although each is valid by itself. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorsIn, minimalConfig } from './load-text.ts';

const key = (digit: string) => `'${digit.repeat(64)}'`;
const twoEnvironments =
  'environments: { a: { baseUrl: https://a.example }, b: { baseUrl: https://b.example }, active: a }\n';

/** What is refused, the configuration, and its errors. */
const contradictions: readonly (readonly [what: string, text: string, ...errors: readonly string[]])[] = [
  [
    'a configuration without an environment',
    'log: { level: info }',
    ':1 environments: no environment is configured; add environments: { sandbox: { baseUrl: https://api.bank.example/psd2 } }, or set PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL',
  ],
  [
    'an active environment that does not exist',
    'environments: { active: c, a: { baseUrl: https://a.example } }',
    ':1 environments.active: unknown environment; expected a',
  ],
  [
    'several environments without an active one',
    'environments: { a: { baseUrl: https://a.example }, b: { baseUrl: https://b.example } }',
    ':1 environments.active: required if there are several environments; expected a or b',
  ],
  [
    'two environments with the same address in different spellings',
    'environments:\n  active: a\n  a: { baseUrl: https://A.example:443/psd2 }\n  b: { baseUrl: https://a.example/psd2/ }',
    ':4 environments.b.baseUrl: same URL as environments.a.baseUrl, and the same segment, pathVersion, query and headers: the bank cannot distinguish the two; change one of them',
  ],
  [
    'an invalid query, and not that the environments are the same without it',
    'environments:\n  active: a\n  a: { baseUrl: https://a.example }\n  b: { baseUrl: https://a.example, query: { bic: 1 } }',
    ':4 environments.b.query.bic: expected a text, { file: PATH } or { env: NAME }; without quotes, this is a number: write it in quotes',
  ],
  [
    'an invalid header of the other environment, and not that the environments are the same without it',
    'environments:\n  active: a\n  a: { baseUrl: https://a.example, headers: { x: 1 } }\n  b: { baseUrl: https://a.example }',
    ':3 environments.a.headers.x: expected a text, { file: PATH } or { env: NAME }; without quotes, this is a number: write it in quotes',
  ],
  [
    'a bank at the listener of the gateway, whatever its path',
    'listen: { host: 0.0.0.0, port: 8081 }\nenvironments:\n  a: { baseUrl: http://127.0.0.1:8081/psd2 }',
    ':3 environments.a.baseUrl: this is the address of the gateway itself (section listen); write the address of the bank',
  ],
  [
    'a bank at the public URL of the gateway',
    'listen: { publicUrl: https://pay.example/gateway }\nenvironments:\n  active: a\n  a: { baseUrl: https://pay.example/gateway/ }\n  b: { baseUrl: https://pay.example/bank }',
    ':4 environments.a.baseUrl: this is the address of the gateway itself (section listen); write the address of the bank',
  ],
  [
    'the metadata service of a cloud as a bank, in any spelling',
    'environments:\n  active: a\n  a: { baseUrl: "https://0xA9FEA9FE/" }\n  b: { baseUrl: "https://[::ffff:169.254.169.254]" }',
    ':3 environments.a.baseUrl: link-local address (169.254.0.0/16, the metadata service of cloud providers); enter the URL of the bank',
    ':4 environments.b.baseUrl: link-local address (169.254.0.0/16, the metadata service of cloud providers); enter the URL of the bank',
  ],
  [
    'a client certificate without a key',
    'environments: { a: { baseUrl: https://a.example, tls: { certFile: x } } }',
    ':1 environments.a.tls.certFile: requires keyFile, the private key of this certificate; add environments.a.tls.keyFile',
  ],
  [
    'TLS settings for a plain http: address',
    'environments: { a: { baseUrl: http://127.0.0.1:1, tls: { caFile: x } } }',
    ':1 environments.a.tls: baseUrl is an http: URL, which does not use TLS; remove the TLS settings, or use https:',
  ],
  [
    'a sign-in of operators that gives nobody a role',
    `${minimalConfig}admin:\n  trustedProxies: [10.0.0.7]\n  oidc: { issuer: https://login.example, clientId: x, roles: { read: [] } }`,
    ':3 admin.proxySignIn.roles: no group has a role, so nobody could sign in; set admin.proxySignIn.roles.operate or admin.proxySignIn.roles.read',
    ':4 admin.oidc.roles: no group has a role, so nobody could sign in; set admin.oidc.roles.operate or admin.oidc.roles.read',
  ],
  [
    'headers of a proxy that is not trusted',
    `${minimalConfig}admin:\n  proxySignIn: { roles: { read: any } }`,
    ':3 admin.proxySignIn.roles: no proxy is trusted, so its headers are ignored; set admin.trustedProxies, or remove proxySignIn',
  ],
  [
    'a proxy with a certificate that is never requested',
    `${minimalConfig}admin:\n  proxySignIn: { roles: { read: any } }\n  trustedProxies: [${key('a')}]`,
    ':4 admin.trustedProxies[0]: the admin listener does not request client certificates; set admin.tls with clientCaFile, or name the proxy by its address',
  ],
  [
    'client certificates of operators without a CA',
    `${minimalConfig}admin:\n  tls: { certFile: c, keyFile: k, clientCertificate: optional }`,
    ':3 admin.tls.clientCertificate: client certificates are requested, but no CA is trusted; set admin.tls.clientCaFile',
  ],
  [
    'an issuer, hosts and proxies of a wrong form',
    `${minimalConfig}admin:\n  hosts: [10.0.0.1, 'penstock:9090']\n  trustedProxies: [10.0.0.0/33, proxy.example]\n  oidc: { issuer: http://login.example, clientId: x, scopes: [profile], roles: { read: any } }`,
    ':3 admin.hosts[0]: expected a host name without a port, such as penstock-operators.payments.svc',
    ':3 admin.hosts[1]: expected a host name without a port, such as penstock-operators.payments.svc',
    ':4 admin.trustedProxies[0]: expected an IP address, a network such as 10.0.0.0/8, or the SHA-256 fingerprint of a client certificate',
    ':4 admin.trustedProxies[1]: expected an IP address, a network such as 10.0.0.0/8, or the SHA-256 fingerprint of a client certificate',
    ':5 admin.oidc.issuer: expected a URL that begins with https://; http:// is possible on loopback only',
    ':5 admin.oidc.scopes: expected a list that contains openid',
  ],
  [
    'one address for both listeners, wildcard hosts included',
    `${minimalConfig}listen: { host: 0.0.0.0, port: 9090 }\nadmin: { port: 9090 }`,
    ':3 admin.port: the admin listener has the same address and port as the public API (listen.port); set another port',
  ],
  [
    'an admin listener on the network without a token',
    `${minimalConfig}admin:\n  host: 0.0.0.0`,
    ':3 admin.host: other hosts can reach the admin listener, but no operator is configured; set admin.operators, admin.oidc, admin.tokenFile or PENSTOCK_ADMIN_TOKEN, or listen on 127.0.0.1',
  ],
  [
    'two operators with the same name and token',
    `${minimalConfig}admin:\n  operators:\n    - { name: a, tokenSha256: ${key('1')} }\n    - { name: a, tokenSha256: ${key('1')} }`,
    ':5 admin.operators[1].name: same name as admin.operators[0]; the audit log identifies operators by name, so choose another one',
    ':5 admin.operators[1].tokenSha256: same token as admin.operators[0]; give each operator a separate token',
  ],
  [
    'two clients with the same name and API key',
    `${minimalConfig}clients:\n  - { name: a, apiKeySha256: ${key('a')} }\n  - { name: a, apiKeySha256: ${key('A')} }`,
    ':4 clients[1].name: same name as clients[0]; choose another name',
    ':4 clients[1].apiKeySha256: same value as clients[0].apiKeySha256; give each client its own',
  ],
  [
    'a client without a credential',
    `${minimalConfig}clients:\n  - name: a`,
    ':3 clients[0]: the client has no credential; set apiKeySha256 or certificateSha256',
  ],
  [
    'a client of an environment that does not exist',
    `${minimalConfig}clients: [{ name: a, apiKeySha256: ${key('1')}, environments: [production] }]`,
    ':2 clients[0].environments[0]: unknown environment; expected sandbox',
  ],
  [
    'a client with a certificate that the listener never requests',
    `${minimalConfig}clients: [{ name: a, certificateSha256: ${key('1')} }]\nlisten: { tls: { certFile: a, keyFile: b } }`,
    ':2 clients[0].certificateSha256: the listener does not request client certificates; set listen.tls.clientCertificate to optional or required',
  ],
  [
    'client certificates without a trusted authority',
    `${minimalConfig}listen: { tls: { certFile: a, keyFile: b, clientCertificate: required } }`,
    ':2 listen.tls.clientCertificate: client certificates are requested, but no CA is trusted; set listen.tls.clientCaFile',
  ],
  [
    'PostgreSQL and a state file together',
    `${minimalConfig}state: { postgres: 'postgres://penstock@db:5432/penstock', file: state.db }`,
    ':2 state.file: state.file and state.postgres cannot be set together: each is the whole database; remove one of them',
  ],
  [
    'a shared port without PostgreSQL',
    `${minimalConfig}listen: { reusePort: true }\nstate: { redis: 'redis://r:6379' }`,
    ':2 listen.reusePort: processes that share a port need one database, otherwise a payment could be sent twice; set state.postgres',
  ],
  [
    'several instances without PostgreSQL',
    `${minimalConfig}shaping: { expectedInstances: 2 }\nstate: { redis: 'redis://r:6379' }`,
    ':2 shaping.expectedInstances: several instances need one database, otherwise a payment could be sent twice; set state.postgres',
  ],
  [
    'a password of PostgreSQL in the file',
    `${minimalConfig}state: { redis: 'redis://r:6379', postgres: 'postgres://penstock:hunter2@db:5432/penstock' }`,
    ':2 state.postgres: credentials are not allowed in the configuration file; set the whole URL as PENSTOCK_STATE_POSTGRES',
  ],
  [
    'a password of PostgreSQL as a parameter in the file',
    `${minimalConfig}state: { redis: 'redis://r:6379', postgres: 'postgres://penstock@db:5432/penstock?password=hunter2' }`,
    ':2 state.postgres: credentials are not allowed in the configuration file; set the whole URL as PENSTOCK_STATE_POSTGRES',
  ],
  ...['sslpassword', 'PASSWORD', 'pass%77ord'].map(
    (name) =>
      [
        `a secret in the parameter ${name} of PostgreSQL in the file`,
        `${minimalConfig}state: { redis: 'redis://r:6379', postgres: 'postgres://penstock@db:5432/penstock?${name}=hunter2' }`,
        ':2 state.postgres: credentials are not allowed in the configuration file; set the whole URL as PENSTOCK_STATE_POSTGRES',
      ] as const,
  ),
  [
    'a database in the file of a key and of a token',
    `${minimalConfig}state: { file: keys/one, encryptionKeyFile: ./keys/one }\nadmin: { tokenFile: keys/../keys/one }`,
    ':2 state.file: this is also the file of encryptionKeyFile; name another file for the database',
    ':2 state.file: this is also the file of tokenFile; name another file for the database',
  ],
  [
    'a password of Redis in the file',
    `${minimalConfig}state: { redis: { cluster: ['redis://a:6379', 'redis://:hunter2@b:6379'] } }`,
    ':2 state.redis: credentials are not allowed in the configuration file; set the whole URL as PENSTOCK_STATE_REDIS',
  ],
  [
    'a connect timeout that uses up a deadline',
    `${minimalConfig}deadlines: { connect: 2s, status: 1s, read: 2s, write: 2s }\nidempotency: { wait: 0s }\nshaping: { maxWait: { write: 0s, read: 0s, status: 0s } }`,
    ':2 deadlines.connect: 2s must be below deadlines.status (1s), otherwise connecting can use the whole deadline; lower it, or raise deadlines.status',
    ':2 deadlines.connect: 2s must be below deadlines.read (2s), otherwise connecting can use the whole deadline; lower it, or raise deadlines.read',
    ':2 deadlines.connect: 2s must be below deadlines.write (2s), otherwise connecting can use the whole deadline; lower it, or raise deadlines.write',
  ],
  [
    'a queue wait that uses up a deadline',
    `${minimalConfig}shaping: { maxWait: { write: 35s, read: 20s, status: 10s } }\ndeadlines: { status: 10s, read: 15s, write: 35s }`,
    ':2 shaping.maxWait.status: 10s must be below deadlines.status (10s), otherwise a request has no time left after the queue; lower it, or raise deadlines.status',
    ':2 shaping.maxWait.read: 20s must be below deadlines.read (15s), otherwise a request has no time left after the queue; lower it, or raise deadlines.read',
    ':2 shaping.maxWait.write: 35s must be below deadlines.write (35s), otherwise a request has no time left after the queue; lower it, or raise deadlines.write',
  ],
  [
    'a queue wait of one environment that uses up a deadline',
    'environments: { a: { baseUrl: https://a.example, shaping: { maxWait: { read: 15s } } } }\ndeadlines: { read: 15s }',
    ':1 environments.a.shaping.maxWait.read: 15s must be below deadlines.read (15s), otherwise a request has no time left after the queue; lower it, or raise deadlines.read',
  ],
  [
    'deadlines of an environment that contradict each other, or global settings',
    'environments: { a: { baseUrl: https://a.example, deadlines: { connect: 5s, status: 3s, write: 8s }, shaping: { maxWait: { read: 20s } } } }\ndeadlines: { read: 15s }\nshaping: { maxWait: { write: 9s } }',
    ':1 environments.a.deadlines.connect: 5s must be below environments.a.deadlines.status (3s), otherwise connecting can use the whole deadline; lower it, or raise environments.a.deadlines.status',
    ':1 environments.a.shaping.maxWait.read: 20s must be below deadlines.read (15s), otherwise a request has no time left after the queue; lower it, or raise deadlines.read',
    ':3 shaping.maxWait.write: 9s must be below environments.a.deadlines.write (8s), otherwise a request has no time left after the queue; lower it, or raise environments.a.deadlines.write',
  ],
  [
    'a pendingTtl above pendingTtlMax',
    `${minimalConfig}statusCache: { pendingTtl: 16s, pendingTtlMax: 15s }`,
    ':2 statusCache.pendingTtl: 16s must not exceed statusCache.pendingTtlMax (15s), because it grows up to that value; lower it, or raise statusCache.pendingTtlMax',
  ],
  [
    'a wait for the first request that is longer than its deadline',
    `${minimalConfig}idempotency: { wait: 35s }\ndeadlines: { write: 35s }`,
    ':2 idempotency.wait: 35s must be below deadlines.write (35s), otherwise a repeat waits longer than the first request can take; lower it, or raise deadlines.write',
  ],
  [
    'an idempotency window shorter than a write may take',
    `${minimalConfig}idempotency: { window: 10s }\ndeadlines: { write: 35s }`,
    ':3 deadlines.write: 35s must not exceed idempotency.window (10s), otherwise the stored response expires before a repeat can arrive; lower it, or raise idempotency.window',
  ],
  [
    'payments that are forgotten before their responses',
    `${minimalConfig}payments: { rememberFor: 1h }\nidempotency: { window: 24h }`,
    ':3 idempotency.window: 1d must not exceed payments.rememberFor (1h), otherwise the environment of a payment expires before its repeats; lower it, or raise payments.rememberFor',
  ],
  [
    'a writeSocketIdle above idle',
    `${minimalConfig}upstream: { writeSocketIdle: 5s, idle: 4s }`,
    ':2 upstream.writeSocketIdle: 5s must not exceed upstream.idle (4s), because the connection is closed after that time; lower it, or raise upstream.idle',
  ],
  [
    'fewer connections than concurrent calls',
    'environments: { a: { baseUrl: https://a.example, shaping: { maxConcurrent: 30 } } }\nupstream: { maxSockets: 20 }\nshaping: { maxConcurrent: 100 }',
    ':1 environments.a.shaping.maxConcurrent: 30 must not exceed upstream.maxSockets (20), otherwise calls wait for a connection instead of in the queue; lower it, or raise upstream.maxSockets',
    ':3 shaping.maxConcurrent: 100 must not exceed upstream.maxSockets (20), otherwise calls wait for a connection instead of in the queue; lower it, or raise upstream.maxSockets',
  ],
];

describe('contradictory settings (H5)', () => {
  for (const [what, text, ...errors] of contradictions)
    test(`refuses ${what}`, () => assert.deepEqual(errorsIn(text).toSorted(), errors.toSorted()));
});

describe('settings that look contradictory but are valid', () => {
  const valid: Readonly<Record<string, string>> = {
    'two environments on one host with different paths':
      'environments: { active: a, a: { baseUrl: https://x.example/a }, b: { baseUrl: https://x.example/b } }',
    'two banks of a hub, which differ in one of segment, version, query and headers':
      'environments: { active: a, a: { baseUrl: https://x.example }, b: { baseUrl: https://x.example, segment: b }, c: { baseUrl: https://x.example, pathVersion: v2 }, d: { baseUrl: https://x.example, pathVersion: { getPayment: v2 } }, e: { baseUrl: https://x.example, query: { bic: E } }, f: { baseUrl: https://x.example, headers: { X-BIC: F } }, g: { baseUrl: https://x.example, headers: { X-BIC: { file: /g } } } }',
    'a bank at a private address': 'environments: { a: { baseUrl: https://10.0.0.5 } }',
    'one port on two addresses': `${minimalConfig}listen: { host: 192.0.2.1, port: 9090 }`,
    'two listeners that take any free port': `${minimalConfig}listen: { port: 0 }\nadmin: { port: 0 }`,
    'an admin listener on the network for operators with tokens': `${minimalConfig}admin: { host: 0.0.0.0, operators: [{ name: a, tokenSha256: ${key('1')} }] }`,
    'a single environment without an active one': 'environments: { only: { baseUrl: https://a.example } }',
    'several environments for one client': `${twoEnvironments}clients: [{ name: a, apiKeySha256: ${key('1')}, environments: [a, b] }]`,
  };
  for (const [what, text] of Object.entries(valid))
    test(`accepts ${what}`, () => assert.deepEqual(errorsIn(text), []));
});

test('accepts an admin listener on the network if the environment variable contains a token', () => {
  assert.deepEqual(errorsIn(`${minimalConfig}admin: { host: 0.0.0.0 }`, { PENSTOCK_ADMIN_TOKEN: 'x' }), []);
});

describe('the error for a contradiction', () => {
  const noTimeLeft =
    'shaping.maxWait.write: 10s must be below deadlines.write (10s), otherwise a request has no time left after the queue; lower it, or raise deadlines.write';

  test('is at the line of the setting that should change', () => {
    assert.deepEqual(
      errorsIn(`${minimalConfig}deadlines: { write: 10s }\nshaping: { maxWait: { write: 10s } }`),
      [`:3 ${noTimeLeft}`],
    );
  });

  test('names the environment variable that sets one of the two', () => {
    const variables = { PENSTOCK_SHAPING_MAX_WAIT_WRITE: '10s' };
    assert.deepEqual(errorsIn(`${minimalConfig}deadlines: { write: 10s }`, variables), [
      `PENSTOCK_SHAPING_MAX_WAIT_WRITE ${noTimeLeft}`,
    ]);
  });

  test('names the two written settings if the setting between them is a default', () => {
    assert.deepEqual(errorsIn(`${minimalConfig}idempotency: { wait: 30s, window: 30s }`), [
      ':2 idempotency.wait: 30s must be below idempotency.window (30s), otherwise the stored response expires before a repeat can arrive; lower it, or raise idempotency.window',
    ]);
  });

  test('is one error, although other defaults follow one of the two settings', () => {
    assert.deepEqual(errorsIn(`${minimalConfig}deadlines: { write: 900ms }\nidempotency: { wait: 40s }`), [
      ':3 idempotency.wait: 40s must be below deadlines.write (900ms), otherwise a repeat waits longer than the first request can take; lower it, or raise deadlines.write',
    ]);
  });
});
