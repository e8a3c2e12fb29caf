import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorsIn, minimalConfig } from './load-text.ts';

const key = (digit: string) => `'${digit.repeat(64)}'`;
const twoSides =
  'environments: { a: { baseUrl: https://a.example }, b: { baseUrl: https://b.example }, active: a }\n';

/** A promise, what breaks it, and what is told about it. */
const contradictions: readonly (readonly [promise: string, text: string, ...faults: readonly string[]])[] = [
  [
    'there must be an environment',
    'log: { level: info }',
    ':1 environments: at least one environment is needed; write environments: { sandbox: { baseUrl: https://api.bank.example/psd2 } }, or set PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL',
  ],
  [
    'the active environment must be one of them',
    'environments: { active: c, a: { baseUrl: https://a.example } }',
    ':1 environments.active: there is no environment of this name; write a',
  ],
  [
    'of several environments one must be active',
    'environments: { a: { baseUrl: https://a.example }, b: { baseUrl: https://b.example } }',
    ':1 environments.active: with several environments, one must be active; write a or b',
  ],
  [
    'two environments are never the same address, however it is written',
    'environments:\n  active: a\n  a: { baseUrl: https://A.example:443/psd2 }\n  b: { baseUrl: https://a.example/psd2/ }',
    ':4 environments.b.baseUrl: environment a has the same address; a switch between them would change nothing',
  ],
  [
    'the metadata service of a cloud is no bank, however it is written',
    'environments:\n  active: a\n  a: { baseUrl: "https://0xA9FEA9FE/" }\n  b: { baseUrl: "https://[::ffff:169.254.169.254]" }',
    ':3 environments.a.baseUrl: this is the metadata service of a cloud, not a bank',
    ':4 environments.b.baseUrl: this is the metadata service of a cloud, not a bank',
  ],
  [
    'a client certificate has a key',
    'environments: { a: { baseUrl: https://a.example, tls: { certFile: x } } }',
    ':1 environments.a.tls: a certificate and its key go together; give both certFile and keyFile',
  ],
  [
    'TLS is not set up for a plain address',
    'environments: { a: { baseUrl: http://127.0.0.1:1, tls: { caFile: x } } }',
    ':1 environments.a.tls: baseUrl is a plain http: address, where none of this is used; remove it or write https:',
  ],
  [
    'operators and TPP systems have listeners of their own, wildcards included',
    `${minimalConfig}listen: { host: 0.0.0.0, port: 9090 }`,
    ':2 admin.port: TPP systems and operators cannot share one host and port; choose another port than listen.port',
  ],
  [
    'operators who come from other machines have a token',
    `${minimalConfig}admin:\n  host: 0.0.0.0`,
    ':3 admin.host: operators can reach this from other machines, but none has a token; set admin.tokenFile, PENSTOCK_ADMIN_TOKEN or admin.operators, or listen on 127.0.0.1',
  ],
  [
    'operators can be told apart',
    `${minimalConfig}admin:\n  operators:\n    - { name: a, tokenSha256: ${key('1')} }\n    - { name: a, tokenSha256: ${key('1')} }`,
    ':5 admin.operators[1].name: admin.operators[0] has this name already; the audit log must tell them apart',
    ':5 admin.operators[1].tokenSha256: admin.operators[0] has this token already; give each operator a token',
  ],
  [
    'clients can be told apart',
    `${minimalConfig}clients:\n  - { name: a, apiKeySha256: ${key('a')} }\n  - { name: a, apiKeySha256: ${key('A')} }`,
    ':4 clients[1].name: clients[0] has this name already; choose another',
    ':4 clients[1].apiKeySha256: clients[0] has the same; give each client its own',
  ],
  [
    'a client proves who it is',
    `${minimalConfig}clients:\n  - name: a`,
    ':3 clients[0]: nothing proves who this client is; give apiKeySha256 or certificateSha256',
  ],
  [
    'a client uses environments that exist',
    `${minimalConfig}clients: [{ name: a, apiKeySha256: ${key('1')}, environments: [production] }]`,
    ':2 clients[0].environments[0]: there is no environment of this name; write sandbox',
  ],
  [
    'a client is not known by a certificate that is never asked for',
    `${minimalConfig}clients: [{ name: a, certificateSha256: ${key('1')} }]\nlisten: { tls: { certFile: a, keyFile: b } }`,
    ':2 clients[0].certificateSha256: no certificate is ever asked for; set listen.tls.clientCertificate to optional or required',
  ],
  [
    'client certificates come from an authority',
    `${minimalConfig}listen: { tls: { certFile: a, keyFile: b, clientCertificate: required } }`,
    ':2 listen.tls.clientCertificate: client certificates are asked for, but no authority is believed; set listen.tls.clientCaFile',
  ],
  [
    'the state is kept in one place',
    `${minimalConfig}state: { redis: 'redis://redis:6379/0', file: state.db }`,
    ':2 state.file: the state is kept in Redis or in a file, not in both; remove state.file or state.redis',
  ],
  [
    'processes that share a port share their state',
    `${minimalConfig}listen: { reusePort: true }`,
    ':2 listen.reusePort: processes that share a port must share their state, or a payment could be made twice; set state.redis',
  ],
  [
    'instances that share a rate share their state',
    `${minimalConfig}shaping: { expectedInstances: 2 }`,
    ':2 shaping.expectedInstances: several instances must share their state, or a payment could be made twice; set state.redis',
  ],
  [
    'the password of Redis does not stand in the file',
    `${minimalConfig}state: { redis: { cluster: ['redis://a:6379', 'redis://:hunter2@b:6379'] } }`,
    ':2 state.redis: credentials do not belong into this file; give the whole address as PENSTOCK_STATE_REDIS',
  ],
  [
    'connecting leaves time for every call',
    `${minimalConfig}deadlines: { connect: 2s, status: 1s, read: 2s, write: 2s }\nidempotency: { wait: 0s }\nshaping: { maxWait: { write: 0s, read: 0s, status: 0s } }`,
    ':2 deadlines.connect: 2s must be below deadlines.status, which is 1s, or connecting uses up the time of the call',
    ':2 deadlines.connect: 2s must be below deadlines.read, which is 2s, or connecting uses up the time of the call',
    ':2 deadlines.connect: 2s must be below deadlines.write, which is 2s, or connecting uses up the time of the call',
  ],
  [
    'waiting for a turn leaves time for the call',
    `${minimalConfig}shaping: { maxWait: { write: 35s, read: 20s, status: 10s } }`,
    ':2 shaping.maxWait.status: 10s must be below deadlines.status, which is 10s, or a call that waited has no time left',
    ':2 shaping.maxWait.read: 20s must be below deadlines.read, which is 15s, or a call that waited has no time left',
    ':2 shaping.maxWait.write: 35s must be below deadlines.write, which is 35s, or a call that waited has no time left',
  ],
  [
    'waiting for a turn leaves time for the call where an environment has its own',
    'environments: { a: { baseUrl: https://a.example, shaping: { maxWait: { read: 15s } } } }',
    ':1 environments.a.shaping.maxWait.read: 15s must be below deadlines.read, which is 15s, or a call that waited has no time left',
  ],
  [
    'a pending status is not kept longer than its longest time',
    `${minimalConfig}statusCache: { pendingTtl: 16s }`,
    ':2 statusCache.pendingTtl: 16s must not exceed statusCache.pendingTtlMax, which is 15s, because it grows towards that',
  ],
  [
    'a repeat does not wait longer than the first one may take',
    `${minimalConfig}idempotency: { wait: 35s }`,
    ':2 idempotency.wait: 35s must be below deadlines.write, which is 35s, or a repeat waits longer than the first one may take',
  ],
  [
    'answers are remembered longer than a write may take',
    `${minimalConfig}idempotency: { window: 10s }`,
    ':2 deadlines.write: 35s must not exceed idempotency.window, which is 10s, or an answer is forgotten before a repeat can come',
  ],
  [
    'payments are remembered longer than answers',
    `${minimalConfig}payments: { rememberFor: 1h }`,
    ':2 idempotency.window: 1d must not exceed payments.rememberFor, which is 1h, or a repeat finds its payment forgotten',
  ],
  [
    'a connection is not used for payments longer than it is kept',
    `${minimalConfig}upstream: { writeSocketIdle: 5s }`,
    ':2 upstream.writeSocketIdle: 5s must not exceed upstream.idle, which is 4s, when the connection is closed anyway',
  ],
  [
    'calls never wait unseen for a connection',
    'environments: { a: { baseUrl: https://a.example, shaping: { maxConcurrent: 30 } } }\nupstream: { maxSockets: 20 }',
    ':1 environments.a.shaping.maxConcurrent: 30 must not exceed upstream.maxSockets, which is 20, or calls wait unseen for a connection',
    ':2 shaping.maxConcurrent: 100 must not exceed upstream.maxSockets, which is 20, or calls wait unseen for a connection',
  ],
];

describe('settings that contradict each other are refused (H5)', () => {
  for (const [promise, text, ...faults] of contradictions)
    test(promise, () => assert.deepEqual(errorsIn(text).toSorted(), faults.toSorted()));
});

describe('settings that only seem to contradict each other are taken', () => {
  const fine: Readonly<Record<string, string>> = {
    'two environments on one host, told apart by their paths':
      'environments: { active: a, a: { baseUrl: https://x.example/a }, b: { baseUrl: https://x.example/b } }',
    'a bank at a private address': 'environments: { a: { baseUrl: https://10.0.0.5 } }',
    'one port on two addresses': `${minimalConfig}listen: { host: 192.0.2.1, port: 9090 }`,
    'two listeners that take any free port': `${minimalConfig}listen: { port: 0 }\nadmin: { port: 0 }`,
    'operators from other machines who have tokens': `${minimalConfig}admin: { host: 0.0.0.0, operators: [{ name: a, tokenSha256: ${key('1')} }] }`,
    'an active environment by default if there is but one':
      'environments: { only: { baseUrl: https://a.example } }',
    'several environments for one client': `${twoSides}clients: [{ name: a, apiKeySha256: ${key('1')}, environments: [a, b] }]`,
  };
  for (const [promise, text] of Object.entries(fine))
    test(promise, () => assert.deepEqual(errorsIn(text), []));
});

test('a token in the environment variable lets operators come from other machines', () => {
  assert.deepEqual(errorsIn(`${minimalConfig}admin: { host: 0.0.0.0 }`, { PENSTOCK_ADMIN_TOKEN: 'x' }), []);
});

describe('a contradiction is told', () => {
  test('at the setting that was written down, if the other one is a default', () => {
    assert.deepEqual(errorsIn(`${minimalConfig}deadlines: { write: 10s }`), [
      ':2 shaping.maxWait.write: 10s must be below deadlines.write, which is 10s, or a call that waited has no time left',
    ]);
  });

  test('with the variable that brought it up', () => {
    assert.deepEqual(errorsIn(minimalConfig, { PENSTOCK_DEADLINES_WRITE: '10s' }), [
      'PENSTOCK_DEADLINES_WRITE shaping.maxWait.write: 10s must be below deadlines.write, which is 10s, or a call that waited has no time left',
    ]);
  });
});
