/** Warnings about configurations that are valid, but probably not intended; with --strict, they are errors. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { EnvironmentVariables } from '../../../src/config/environment-variables.ts';
import { loadConfigAndFiles, strictly } from '../../../src/config/load.ts';
import { withFile } from '../../kit/folder.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const authority = createAuthority(scopeOfAllTests());
const inDays = (days: number) =>
  `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`;
const expiring = authority.issue('expiring', { from: '20250101000000Z', until: inDays(12.5) });
const valid = authority.issue('valid', { from: '20250101000000Z', until: inDays(100) });

const qwac = authority.issue('qwac', {
  subject: '/C=DE/O=Shop/CN=Shop',
  until: inDays(100),
  extensions: 'subjectAltName = DNS:*.tpp.test, DNS:tpp.test',
});
const receiving = ({ certFile, keyFile }: typeof qwac) =>
  `environments: { sandbox: { baseUrl: https://bank.test/psd2, bankNotifications: receive, tls: { certFile: ${certFile}, keyFile: ${keyFile} } } }\n`;

const webhookSecret = join(authority.folder, 'webhook-secret');
writeFileSync(webhookSecret, `whsec_${randomBytes(32).toString('base64')}`);

const bank = 'environments: { sandbox: { baseUrl: https://bank.test/psd2 } }\n';
const operators = `admin: { operators: [{ name: ann, tokenSha256: ${'ab12'.repeat(16)} }] }\n`;
const file = `state: { file: ${join(authority.folder, 'state.db')} }\n`;
const client = (name: string, more = '') =>
  `{ name: ${name}, apiKeySha256: ${Buffer.from(name.repeat(32)).toString('hex').slice(0, 64)}${more} }`;

/** The warnings, without the name of the file. */
function warningsIn(text: string, variables: EnvironmentVariables = {}): readonly string[] {
  return withFile(text, (path) => {
    const loaded = loadConfigAndFiles(path, variables);
    if (loaded.kind === 'invalid') return assert.fail(loaded.errors.join('\n'));
    const strict = strictly(loaded);
    assert.deepEqual(strict.kind === 'invalid' ? strict.errors : [], loaded.warnings, 'with --strict');
    return loaded.warnings.map((warning) => warning.replace(path, ''));
  });
}

/** What the warning is about, the configuration, and the warnings. */
const cases: readonly (readonly [what: string, text: string, ...warnings: readonly RegExp[]])[] = [
  ['nothing, in a complete configuration', bank + operators + file],
  [
    'a listener that other hosts can reach without clients, and links to loopback',
    `${bank}${operators}${file}listen:\n  host: "::"\n`,
    /^:5 listen\.host: every host that can reach :: can send payments, because no client is configured; add clients, or listen on 127\.0\.0\.1$/,
    /^:5 listen\.publicUrl: links in responses point to http:\/\/127\.0\.0\.1:8080, .*; set the URL under which TPP systems reach the gateway$/,
  ],
  [
    'links to loopback, although the clients are identified',
    `${bank}${operators}${file}clients: [${client('shop')}]\nlisten: { host: 10.0.0.7, publicUrl: https://localhost }\n`,
    /^:5 listen\.publicUrl: links in responses point to https:\/\/localhost/,
  ],
  [
    'nothing, if every caller needs a client certificate',
    `${bank}${operators}${file}listen: { host: 0.0.0.0, publicUrl: https://pay.test, tls: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, clientCaFile: ${authority.certFile}, clientCertificate: required } }\n`,
  ],
  [
    'look-ups of requests without clients',
    `${bank}${operators}${file}listen: { host: 0.0.0.0, publicUrl: https://pay.test, tls: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, clientCaFile: ${authority.certFile}, clientCertificate: required } }\nrequests: { selfService: true }\n`,
    /^:5 requests\.selfService: everyone who can send requests to 0\.0\.0\.0 can look up those of all others, because no client is configured; add clients, or remove this setting$/,
  ],
  [
    'notifications of a bank at a host that does not belong to the QWAC',
    `${receiving(qwac)}${operators}${file}notifications: { publicUrl: https://push.other.test, listen: {} }\n`,
    /^:4 notifications\.publicUrl: push\.other\.test does not belong to a domain of the client certificate of sandbox \(Shop, \*\.tpp\.test, tpp\.test\), so the bank may send no notifications; use a host of such a domain$/,
  ],
  [
    'nothing, for notifications of a bank at a host of the QWAC',
    `${receiving(qwac)}${operators}${file}notifications: { publicUrl: https://push.tpp.test/psd2, listen: {} }\n`,
  ],
  [
    'the certificate of the listener for notifications',
    `${receiving(qwac)}${operators}${file}notifications: { publicUrl: https://tpp.test, listen: { tls: { certFile: ${expiring.certFile}, keyFile: ${expiring.keyFile} } } }\n`,
    /notifications\.listen\.tls\.certFile: the certificate of the listener for the notifications of banks expires in 12 days/,
  ],
  [
    'a token that is generated at each start',
    bank + file,
    /^:1 admin\.operators: no operator is configured: each start generates a new token, .*; add an entry for each operator$/,
  ],
  [
    'webhooks with PostgreSQL and without a key',
    `${bank}${operators}state: { postgres: 'postgres://p@db/p' }\nclients: [${client('shop', `, notifications: { urls: ['https://shop.test/hook'], secretFile: ${webhookSecret} }`)}]\n`,
    /^:3 state\.encryptionKeyFile: clients have webhooks, but without this key the gateway stores no access tokens/,
  ],
  [
    'a state in memory',
    bank + operators,
    /^:1 state: the database is in memory: after a restart, a repeated payment is sent to the bank again; set state\.file or state\.postgres$/,
  ],
  [
    'a state file in a folder that does not exist',
    `${bank}${operators}state: { file: /nowhere/penstock/state.db }\n`,
    /^:3 state\.file: ENOENT: \/nowhere\/penstock; create this folder/,
  ],
  [
    'a URL of the bank that contains the standard segment',
    `${operators}${file}environments: { a: { baseUrl: https://bank.test/psd2/berlingroup/v1 } }\n`,
    /^:3 environments\.a\.baseUrl: the path contains the standard segment, .* go to https:\/\/bank\.test\/psd2\/berlingroup\/v1\/berlingroup\/v1\/payments\/\.\.\.; remove \/berlingroup\/v1 from baseUrl/,
  ],
  [
    'a URL of the bank that contains another standard segment',
    `${operators}${file}standard: { segment: psd2/xs2a }\nenvironments: { a: { baseUrl: https://bank.test/psd2/xs2a } }\n`,
    /^:4 environments\.a\.baseUrl: .* remove \/psd2\/xs2a from baseUrl/,
  ],
  [
    'nothing, if the segment is only a part of a path segment of the URL',
    `${operators}${file}environments: { a: { baseUrl: https://bank.test/berlingroup2 } }\n`,
  ],
  [
    'nothing, if the environment has another path than the standard segment',
    `${operators}${file}environments: { active: a, a: { baseUrl: https://bank.test/berlingroup/v1, segment: "", pathVersion: "" }, b: { baseUrl: https://bank.test/v1/berlin-group, segment: "" }, c: { baseUrl: https://bank.test/psd2/v1, segment: psd, pathVersion: v2 } }\n`,
  ],
  [
    'a URL of the bank that ends with the version, or with the segment of the environment',
    `${operators}${file}environments:\n  active: a\n  a: { baseUrl: https://bank.test/v1.1, segment: "", pathVersion: v1.1 }\n  b: { baseUrl: https://bank.test/BBVA, segment: BBVA }\n`,
    /^:5 environments\.a\.baseUrl: the path contains the version of this environment, .* go to https:\/\/bank\.test\/v1\.1\/v1\.1\/payments\/\.\.\.; remove \/v1\.1 from baseUrl/,
    /^:6 environments\.b\.baseUrl: the path contains the segment of this environment, .* remove \/BBVA from baseUrl, or correct environments\.b\.segment and pathVersion$/,
  ],
  [
    'texts of headers and queries whose names say that they are secrets',
    `${operators}${file}environments:\n  a:\n    baseUrl: https://bank.test\n    headers: { web-api-key: 123x, X-BIC: A }\n    query: { Access_Token: 123x, bic: A }\n`,
    /^:6 environments\.a\.headers\.web-api-key: the name says that this text is a secret; write it into a file or an environment variable, and \{ file: PATH \} or \{ env: NAME \} here$/,
    /^:7 environments\.a\.query\.Access_Token: the name says/,
  ],
  [
    'clients whose environments do not include the active one',
    `${operators}${file}environments: { active: a, a: { baseUrl: https://a.test }, b: { baseUrl: https://b.test }, c: { baseUrl: https://c.test } }\nclients:\n  - ${client('shop', ', environments: [b]')}\n  - ${client('store', ', environments: [b, c]')}\n  - ${client('other', ', environments: [a, b]')}\n`,
    /^:5 clients\[0\]\.environments: the active environment \(environments\.active: a\) is not in this list: new payments of shop go to b, although a is active; add it, or remove the list$/,
    /^:6 clients\[1\]\.environments: .*: new payments of store are refused unless they have the header Penstock-Environment;/,
  ],
  [
    'certificates that expire in less than 30 days',
    `${operators}${file}environments:\n  a:\n    baseUrl: https://a.test\n    tls: { certFile: ${expiring.certFile}, keyFile: ${expiring.keyFile} }\n    signing: { certFile: ${expiring.certFile}, keyFile: ${expiring.keyFile}, algorithm: ecdsa-sha256 }\n`,
    /^:6 environments\.a\.tls\.certFile: the QWAC of a expires in 12 days, on \d{4}-.*; replace the file before that$/,
    /^:7 environments\.a\.signing\.certFile: the .* of a expires in 12 days/,
  ],
  [
    'signatures that do not cover what the standard requires',
    `${operators}${file}environments:\n  active: a\n  a:\n    baseUrl: https://a.test\n    signing: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, algorithm: ecdsa-sha256, headers: ["(request-target)", date, psu-id, x-request-id] }\n  b:\n    baseUrl: https://b.test\n    signing: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, algorithm: ecdsa-sha256, headers: [tpp-redirect-uri, psu-corporate-id, psu-id, x-request-id, digest] }\n`,
    /^:7 environments\.a\.signing\.headers: the standard requires that a signature also covers digest, psu-corporate-id, tpp-redirect-uri; add this, unless the bank refuses it$/,
  ],
  [
    'placeholders: reserved hosts and addresses, hashes and words',
    `${file}environments:
  active: a
  a: { baseUrl: https://api.bank.example/psd2 }
  b: { baseUrl: https://192.0.2.7/psd2, probePath: /TODO }
clients:
  - { name: a, apiKeySha256: ${'a'.repeat(64)} }
  - { name: b, apiKeySha256: 057ba03d6c44104863dc7361fe4578965d1887360f90a0895882e58a6248fc86 }
admin: { operators: [{ name: YOUR-NAME, tokenSha256: ${'ab12'.repeat(16)} }] }
tracing: { otlpUrl: "http://change-me:4318/v1/traces" }
`,
    /^:4 environments\.a\.baseUrl: api\.bank\.example is reserved for examples \(RFC 2606, RFC 5737\), so this is a placeholder; replace it$/,
    /^:5 environments\.b\.baseUrl: 192\.0\.2\.7 is reserved/,
    /^:5 environments\.b\.probePath: this is a placeholder; replace it$/,
    /^:7 clients\[0\]\.apiKeySha256: this hash is a placeholder; replace it with the SHA-256 of a secret$/,
    /^:8 clients\[1\]\.apiKeySha256: this is the SHA-256 of "changeme"; generate a secret/,
    /^:9 admin\.operators\[0\]\.name: this is a placeholder; replace it$/,
    /^:10 tracing\.otlpUrl: this is a placeholder; replace it$/,
  ],
];

describe('penstock check warns about', () => {
  for (const [what, text, ...expected] of cases)
    test(what, () => {
      const warnings = warningsIn(text);
      assert.equal(warnings.length, expected.length, warnings.join('\n'));
      for (const pattern of expected)
        assert.ok(
          warnings.some((warning) => pattern.test(warning)),
          `${pattern}\n${warnings.join('\n')}`,
        );
    });

  test('a token that all operators share', () => {
    const [warning = '', ...others] = warningsIn(bank + file, { PENSTOCK_ADMIN_TOKEN: 'x' });
    assert.match(
      warning,
      /admin\.operators: .*all operators share one token, and the audit log names all of them "admin"/,
    );
    assert.deepEqual(others, []);
  });

  test('a value of an environment variable, with the name of the variable', () => {
    const variables = { PENSTOCK_ENVIRONMENTS_A_BASE_URL: 'https://bank.example' };
    assert.match(
      warningsIn(operators + file, variables).join(),
      /^PENSTOCK_ENVIRONMENTS_A_BASE_URL environments\.a\.baseUrl: bank\.example is reserved/,
    );
  });
});
