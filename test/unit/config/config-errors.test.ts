/** How errors in a configuration are found, located and worded. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { withValue } from '../../../src/config/object-path.ts';
import { settings } from '../../../src/config/settings.ts';
import { errorsIn, minimalConfig } from './load-text.ts';

describe('errors in a configuration', () => {
  test('reports all errors at once, each with its line, its setting and what to write instead', () => {
    const errors = errorsIn(`listen:
  prot: 8080
  maxBody: 1MB
  port: 8080
admin:
  port: 8080
clients:
  - name: shop
    environments: [staging]
environments:
  active: production
  sandbox: { baseUrl: http://api.bank.example }
log:
  level: verbose
  level: loud
deadlines: { connect: 10s, status: 10s }
statusCache: { pendingTtl: 1min, pendingTtlMax: 15s, finalTtl: 60 }
port: 8080
`);

    assert.deepEqual(errors, [
      ':2 listen.prot: unknown key prot; allowed: host, port, publicUrl, errorPageUrl, maxBody, maxConnections, idleTimeout, reusePort, trustedProxies, tls (did you mean port?)',
      ':3 listen.maxBody: expected a size such as 512B, 64KiB or 1MiB (did you mean 1MiB?)',
      ':6 admin.port: the admin listener has the same address and port as the public API (listen.port); set another port',
      ':8 clients[0]: the client has no credential; set apiKeySha256 or certificateSha256',
      ':9 clients[0].environments[0]: unknown environment; expected sandbox',
      ':11 environments.active: unknown environment; expected sandbox',
      ':12 environments.sandbox.baseUrl: http: is allowed on loopback only, because payments would be sent unencrypted; use https:',
      ':15 log.level: duplicate key, which is already in line 14; remove one of the two',
      ':15 log.level: expected trace, debug, info, warn, error, fatal or silent',
      ':16 deadlines.connect: 10s must be below deadlines.status (10s), otherwise connecting can use the whole deadline; lower it, or raise deadlines.status',
      ':17 statusCache.finalTtl: expected a duration such as 500ms, 10s, 2min, 24h or 400d; add the unit to the number',
      ':17 statusCache.pendingTtl: 1min must not exceed statusCache.pendingTtlMax (15s), because it grows up to that value; lower it, or raise statusCache.pendingTtlMax',
      ':18 port: unknown key port; allowed: listen, admin, standard, clients, environments, state, idempotency, payments, statusCache, notifications, deadlines, upstream, circuit, shaping, contract, requests, log, tracing (did you mean listen.port?)',
    ]);
  });

  test('does not report contradictions with the default of an invalid setting', () => {
    assert.deepEqual(
      errorsIn(`${minimalConfig}deadlines: { status: 20 }\nshaping: { maxWait: { status: 15s } }`),
      [
        ':2 deadlines.status: expected a duration such as 500ms, 10s, 2min, 24h or 400d; add the unit to the number',
      ],
    );
  });

  test('reports the errors of each list entry', () => {
    assert.deepEqual(
      errorsIn(
        `${minimalConfig}admin:\n  operators:\n    - { role: read }\n    - { name: b, tokenSha256: x }`,
      ),
      [
        ':4 admin.operators[0].name: required; expected a name of at most 64 letters, digits, ".", "_" and "-", beginning with a letter or digit',
        ':4 admin.operators[0].tokenSha256: required; expected the SHA-256 of the secret as 64 hex digits (printf %s "$SECRET" | sha256sum)',
        ':5 admin.operators[1].tokenSha256: expected the SHA-256 of the secret as 64 hex digits (printf %s "$SECRET" | sha256sum)',
      ],
    );
  });

  test('reports an invalid environment name together with errors inside the environment', () => {
    assert.deepEqual(errorsIn('environments:\n  Sand_Box: { baseUrl: https://a.example, probePath: x }'), [
      ':2 environments.Sand_Box.probePath: expected a path that begins with "/"',
      ':2 environments.Sand_Box: expected an environment name: at most 64 characters a-z and 0-9, separated by single hyphens',
    ]);
  });

  test('reports a status that the pre-flight of an environment cannot expect', () => {
    const expected = 'expected a status from 400 to 499, such as 401';
    assert.deepEqual(
      errorsIn('environments:\n  s: { baseUrl: https://a.example, probeExpects: [401, 200, 500, "403"] }'),
      [1, 2, 3].map((index) => `:2 environments.s.probeExpects[${index}]: ${expected}`),
    );
  });

  test('reports links of the console that are no web address, contain credentials, or have an unknown placeholder', () => {
    const errorsOf = (grafana: string) =>
      errorsIn(`${minimalConfig}admin:\n  links:\n    grafana: ${grafana}`);
    const expected =
      ':4 admin.links.grafana: expected an address with http: or https:, such as https://grafana.example.com/?name={environment}';
    for (const wrong of ['"javascript:alert(1)"', '/d/penstock', 'https://', 'grafana.example', '3000'])
      assert.deepEqual(errorsOf(wrong), [expected], wrong);
    assert.deepEqual(errorsOf('https://olga:secret@grafana.example/'), [
      ':4 admin.links.grafana: everybody who can sign in sees this address: remove the credentials',
    ]);
    assert.deepEqual(errorsOf('"https://grafana.example/?a={enviroment}&b={xRequestId}"'), [
      ':4 admin.links.grafana: unknown placeholder {enviroment}; known: {environment}',
      ':4 admin.links.grafana: unknown placeholder {xRequestId}; known: {environment}',
    ]);
    const traces = 'https://jaeger.example/search?tags={"penstock.request_id":"{xRequestId}"}';
    assert.deepEqual(errorsOf(`null\n    traces: '${traces}'`), []);
  });

  test('reports YAML syntax errors with their line, and no other errors', () => {
    assert.deepEqual(
      errorsIn('listen: { port: 1\nlog: [').map((error) => error.replace(/: .*/, '')),
      [':2 not valid YAML', ':2 not valid YAML'],
    );
    assert.match(errorsIn('a: *b')[0] ?? '', /^:1 not valid YAML: /);
    assert.match(errorsIn('a: 1\n---\nb: 2')[0] ?? '', /^:\d not valid YAML: /);
  });

  test('reports several documents, unknown anchors and merge keys without a mapping in words for users', () => {
    const documents = 'the file contains several documents; remove the lines ---, or all documents but one';
    assert.deepEqual(errorsIn('a: 1\n---\nb: 2'), [`:2 not valid YAML: ${documents}`]);
    assert.deepEqual(errorsIn(`${minimalConfig}log: *level`), [
      ':2 not valid YAML: no anchor has this name; write a text that begins with * in quotes',
    ]);
    assert.match(errorsIn(`${minimalConfig}log: { <<: 1 }`)[0] ?? '', /merge key \(<<\) whose value/);
    assert.match(errorsIn('a: &a { <<: *a }')[0] ?? '', /^:1 not valid YAML: /);
  });

  test('reports a repeated key of each mapping with its path and both lines', () => {
    assert.deepEqual(
      errorsIn(`environments:
  sandbox:
    baseUrl: https://a.example
    "baseUrl": https://b.example
    tls: { caFile: a, caFile: b }
clients:
  - { name: a, apiKeySha256: ${'ab12'.repeat(16)}, name: b }
`).map((error) => error.replace(/; remove.*/, '')),
      [
        ':4 environments.sandbox.baseUrl: duplicate key, which is already in line 3',
        ':5 environments.sandbox.tls.caFile: duplicate key, which is already in line 5',
        ':7 clients[0].name: duplicate key, which is already in line 7',
      ],
    );
  });

  test('reports an error in a merged mapping on its line', () => {
    const text = `environments:
  active: a
  a: &bank
    baseUrl: https://a.example
    probePath: x
  b:
    <<: *bank
    baseUrl: https://b.example
`;
    assert.deepEqual(
      errorsIn(text).map((error) => error.replace(/: .*/, '')),
      [':5 environments.a.probePath', ':5 environments.b.probePath'],
    );
  });

  test('reports a file that is not a mapping', () => {
    assert.match(
      errorsIn('- a list')[0] ?? '',
      /^:1 expected a mapping \(keys with values\); allowed: listen, /,
    );
  });

  test('names the keys of a mapping, and the form of a list', () => {
    const hash = 'ab12'.repeat(16);
    assert.deepEqual(
      errorsIn(`${minimalConfig}deadlines: 10s\nclients: [{ name: a, apiKeySha256: ${hash}, quota: 600 }]`),
      [
        ':2 deadlines: expected a mapping (keys with values); allowed: connect, status, read, write',
        ':3 clients[0].quota: expected a mapping (keys with values); allowed: rate, burst',
      ],
    );
    assert.deepEqual(errorsIn(`${minimalConfig}clients: { name: a }`), [
      ':2 clients: expected a list: [a, b], or a line that begins with "- " for each entry',
    ]);
  });

  test('suggests a key whose words are all in the unknown key', () => {
    assert.match(
      errorsIn(`${minimalConfig}listen: { client_max_body_size: 1MiB }`)[0] ?? '',
      /\(did you mean maxBody\?\)$/,
    );
  });

  test('suggests a setting inside of the same mapping before those of other sections', () => {
    const text = `environments:
  sandbox:
    baseUrl: https://a.example
    certFile: a
    expects: [401]
upstream: { maxConcurrent: 20 }
baseUrl: https://a.example
`;
    assert.deepEqual(
      errorsIn(text).map((error) => error.replace(/; allowed: .* \(/, ' (')),
      [
        ':4 environments.sandbox.certFile: unknown key certFile (did you mean environments.sandbox.tls.certFile?)',
        ':5 environments.sandbox.expects: unknown key expects (did you mean probeExpects?)',
        ':6 upstream.maxConcurrent: unknown key maxConcurrent (did you mean shaping.maxConcurrent?)',
        ':7 baseUrl: unknown key baseUrl (did you mean environments.NAME.baseUrl?)',
      ],
    );
  });

  test('says that yes and no are not booleans', () => {
    for (const value of ['yes', 'No', 'on', 'OFF'])
      assert.deepEqual(errorsIn(`${minimalConfig}statusCache: { enabled: ${value} }`), [
        ':2 statusCache.enabled: expected true or false, not yes, no, on or off',
      ]);
    assert.deepEqual(errorsIn(`${minimalConfig}statusCache: { enabled: 1 }`), [
      ':2 statusCache.enabled: expected true or false',
    ]);
  });

  test('lists the allowed keys of an entry, and suggests the one that begins with the unknown key', () => {
    assert.deepEqual(errorsIn(`${minimalConfig}clients: [{ name: a, apiKey: x }]`), [
      ':2 clients[0].apiKey: unknown key apiKey; allowed: name, tenant, apiKeySha256, certificateSha256, environments, quota, notifications (did you mean apiKeySha256?)',
    ]);
  });

  test('names the environment variable that replaces a variable of the shell, without quoting the value', () => {
    const advice = '; variables are not replaced: write the value, or set';
    assert.deepEqual(
      errorsIn(
        `${minimalConfig}listen: { port: "\${PORT}" }\nstate: { redis: "\${REDIS_URL:-CANARY}" }\nclients: [{ name: "\${CLIENT}" }]`,
      ).map((error) => error.replace(/^(:\d+ \S+) .*?(; variables|$)/, '$1$2')),
      [
        `:2 listen.port:${advice} PENSTOCK_LISTEN_PORT`,
        `:3 state.redis:${advice} PENSTOCK_STATE_REDIS`,
        `:4 clients[0].name:${advice} PENSTOCK_CLIENTS`,
      ],
    );
  });

  test('accepts an environment that is named like a section', () => {
    assert.deepEqual(errorsIn('environments:\n  upstream: { baseUrl: https://a.example }'), []);
  });

  test('suggests active for a misspelt active', () => {
    assert.deepEqual(errorsIn('environments:\n  activ: a\n  a: { baseUrl: https://a.example }'), [
      ':2 environments.activ: expected an environment: a mapping with baseUrl (did you mean active?)',
    ]);
  });

  test('reports an invalid aliased value on the line of its anchor', () => {
    const aliased =
      'shaping: { maxWait: &w { read: 1 } }\nenvironments:\n  a: { baseUrl: https://a.example, shaping: { maxWait: *w } }';
    assert.deepEqual(
      errorsIn(aliased).map((error) => error.replace(/: expected .*/, '')),
      [':1 environments.a.shaping.maxWait.read', ':1 shaping.maxWait.read'],
    );
  });

  test('never quotes a value, which may be a secret in the wrong place', () => {
    const canary = 'CANARY-hunter2';
    const broken = [
      `a: "${canary}`,
      `@${canary}`,
      `a: b: ${canary}`,
      `a: *${canary}`,
      `a: !${canary} b`,
      `a: [${canary}`,
    ];
    for (const text of [canary, ...broken]) assert.ok(!errorsIn(text).join().includes(canary), text);

    for (const value of [canary, [canary], { x: canary }, [{ name: 'a', tokenSha256: canary }]]) {
      const tree = inEnvironment.reduce<unknown>((tree, path) => withValue(tree, path, value), {});
      const errors = errorsIn(JSON.stringify(tree));
      assert.ok(errors.length > 20 && !errors.join().includes(canary), errors.join('\n'));
    }
  });

  test('reports errors in sections with arbitrary values, and never throws', () => {
    const given = fc.array(fc.tuple(fc.constantFrom(...inEnvironment), fc.jsonValue()), { maxLength: 8 });
    fc.assert(
      fc.property(given, (values) => {
        const tree = values.reduce<unknown>((tree, [path, value]) => withValue(tree, path, value), {});
        assert.ok(errorsIn(JSON.stringify(tree)).every((error) => /^:\d+ /.test(error)));
      }),
    );
  });

  test('reports errors in arbitrary text, and never throws', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => assert.ok(errorsIn(text).length > 0)));
  });
});

/** The path of every setting, in an environment called sandbox. */
const inEnvironment = settings.map(({ path }) => path.map((name) => (name === '*' ? 'sandbox' : name)));
