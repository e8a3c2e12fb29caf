/** Errors in the files that a configuration names are reported all at once, before the gateway starts. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig, loadConfigAndFiles } from '../../../src/config/load.ts';
import { withFile } from '../../kit/folder.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';

const authority = createAuthority(scopeOfAllTests());
const [valid, other] = [authority.issue('own'), authority.issue('other')];
const expired = authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' });
const empty = join(authority.folder, 'empty');
writeFileSync(empty, '');
const missing = join(authority.folder, 'nowhere');

/** The errors, without the name of the configuration file. */
const errorsIn = (text: string, variables = {}, load = loadConfigAndFiles): readonly string[] =>
  withFile(text, (file) => {
    const loaded = load(file, variables);
    return loaded.kind === 'valid' ? [] : loaded.errors.map((error) => error.replace(file, ''));
  });

const unreadable = `ENOENT: ${missing}`;

const everyFileUnusable = `listen:
  tls:
    certFile: ${valid.certFile}
    keyFile: ${other.keyFile}
    clientCaFile: ${empty}
environments:
  active: a
  a:
    baseUrl: https://a.example
    tls:
      certFile: ${expired.certFile}
      keyFile: ${expired.keyFile}
      caFile: ${missing}
  b:
    baseUrl: https://b.example
    tls: { caFile: ${valid.keyFile} }
    signing:
      certFile: ${valid.certFile}
      keyFile: ${valid.keyFile}
  c:
    baseUrl: https://c.example
    signing:
      certFile: ${empty}
      keyFile: ${empty}
admin:
  tokenFile: ${missing}
state:
  encryptionKeyFile: ${missing}
`;

describe('the files that a configuration names', () => {
  test('reports all unusable files at once, each with its line and its setting', () => {
    assert.deepEqual(errorsIn(everyFileUnusable), [
      ':4 listen.tls.keyFile: the file does not match the certificate',
      ':5 listen.tls.clientCaFile: the file contains no certificate in PEM format, or a truncated one',
      ':11 environments.a.tls.certFile: the file contains a certificate that expired on 2026-01-01T00:00:00.000Z',
      `:13 environments.a.tls.caFile: ${unreadable}`,
      ':16 environments.b.tls.caFile: the file contains no certificate in PEM format, or a truncated one',
      ':19 environments.b.signing.keyFile: the file contains no key for rsa-sha256',
      ':23 environments.c.signing.certFile: the file contains no certificate in PEM format',
      ':24 environments.c.signing.keyFile: the file contains no private key in PEM format without a passphrase',
      `:26 admin.tokenFile: ${unreadable}`,
      `:28 state.encryptionKeyFile: ${unreadable}`,
    ]);
  });

  test('names the working directory, but not the path, of a relative file of a secret: it may be the secret itself', () => {
    const text =
      'environments:\n  sandbox: { baseUrl: https://a.example }\nadmin:\n  tokenFile: the-token-itself\n';
    const where = `relative to the working directory, ${process.cwd()}`;
    assert.deepEqual(errorsIn(text), [`:4 admin.tokenFile: ENOENT: the file (${where})`]);
  });

  test('reports unusable files together with other errors', () => {
    const text = `environments:\n  active: c\n  a: { baseUrl: http://a.example }\n  b:\n    baseUrl: https://me:secret@b.example\n  c:\n    baseUrl: https://c.example\n    tls: { caFile: ${missing} }\n`;
    assert.deepEqual(
      errorsIn(text).map((error) => error.slice(0, 38)),
      [
        ':3 environments.a.baseUrl: http: is al',
        ':5 environments.b.baseUrl: credentials',
        ':8 environments.c.tls.caFile: ENOENT: ',
      ],
    );
  });

  test('accepts usable files', () => {
    const text = `environments: { a: { baseUrl: https://a.example, tls: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, caFile: ${authority.certFile} }, signing: { certFile: ${valid.certFile}, keyFile: ${valid.keyFile}, algorithm: ecdsa-sha256 } } }`;
    assert.deepEqual(errorsIn(text), []);
  });

  test('names the environment variable that names an unusable file', () => {
    const variables = { PENSTOCK_ENVIRONMENTS_A_TLS_CA_FILE: missing };
    assert.deepEqual(errorsIn('environments: { a: { baseUrl: https://a.example } }', variables), [
      `PENSTOCK_ENVIRONMENTS_A_TLS_CA_FILE environments.a.tls.caFile: ${unreadable}`,
    ]);
  });

  test('names the working directory and the path of a relative certificate file', () => {
    const text = 'environments: { a: { baseUrl: https://a.example, tls: { caFile: certs/ca.pem } } }';
    const where = `relative to the working directory, ${process.cwd()}`;
    assert.deepEqual(errorsIn(text), [`:1 environments.a.tls.caFile: ENOENT: certs/ca.pem (${where})`]);
  });

  test('reports a token file without a token, and a key file without a usable key, without quoting them', () => {
    const keys = join(authority.folder, 'keys');
    writeFileSync(keys, `${'5c'.repeat(32)}\ncorrect horse battery staple\n`);
    const text = `environments: { a: { baseUrl: https://a.example } }\nadmin: { tokenFile: ${empty} }\nstate: { encryptionKeyFile: ${keys} }`;
    assert.deepEqual(errorsIn(text), [
      ':2 admin.tokenFile: the file is empty; write the token of the operator into it',
      ':3 state.encryptionKeyFile: the file cannot be used: line 2 is not a key; write one key per line, 32 random bytes in base64 or 64 hex digits (openssl rand -base64 32)',
    ]);
  });

  test('does not read the token file if the environment variable contains the token', () => {
    const text = `environments: { a: { baseUrl: https://a.example } }\nadmin: { tokenFile: ${missing} }`;
    assert.deepEqual(errorsIn(text, { PENSTOCK_ADMIN_TOKEN: 'x' }), []);
  });

  test('does not open files for commands that only call a running gateway', () => {
    assert.deepEqual(errorsIn(everyFileUnusable, {}, loadConfig), []);
  });
});
