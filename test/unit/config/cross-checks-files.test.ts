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

const unreadable = 'this file cannot be read; name one that is there and that the gateway may read';

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
      ':4 listen.tls.keyFile: this file does not match the certificate',
      ':5 listen.tls.clientCaFile: this file contains no certificate in PEM format, or a truncated one',
      ':11 environments.a.tls.certFile: this file contains a certificate that expired on 2026-01-01T00:00:00.000Z',
      `:13 environments.a.tls.caFile: ${unreadable}`,
      ':16 environments.b.tls.caFile: this file contains no certificate in PEM format, or a truncated one',
      ':19 environments.b.signing.keyFile: this file contains no key for rsa-sha256',
      ':23 environments.c.signing.certFile: this file contains no certificate in PEM format',
      ':24 environments.c.signing.keyFile: this file contains no private key in PEM format without a passphrase',
      `:26 admin.tokenFile: ${unreadable}`,
      `:28 state.encryptionKeyFile: ${unreadable}`,
    ]);
  });

  test('names the working directory, but not the path, of a relative file that cannot be read', () => {
    const text =
      'environments:\n  sandbox: { baseUrl: https://a.example }\nadmin:\n  tokenFile: the-token-itself\n';
    const where = `; a relative path begins at the working directory, ${process.cwd()}`;
    assert.deepEqual(errorsIn(text), [`:4 admin.tokenFile: ${unreadable}${where}`]);
  });

  test('reports unusable files together with other errors', () => {
    const text = `environments:\n  active: c\n  a: { baseUrl: http://a.example }\n  b:\n    baseUrl: https://me:secret@b.example\n  c:\n    baseUrl: https://c.example\n    tls: { caFile: ${missing} }\n`;
    assert.deepEqual(
      errorsIn(text).map((error) => error.slice(0, 40)),
      [
        ':3 environments.a.baseUrl: plain http: i',
        ':5 environments.b.baseUrl: an address mu',
        ':8 environments.c.tls.caFile: this file ',
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

  test('does not read the token file if the environment variable contains the token', () => {
    const text = `environments: { a: { baseUrl: https://a.example } }\nadmin: { tokenFile: ${missing} }`;
    assert.deepEqual(errorsIn(text, { PENSTOCK_ADMIN_TOKEN: 'x' }), []);
  });

  test('does not open files for commands that only call a running gateway', () => {
    assert.deepEqual(errorsIn(everyFileUnusable, {}, loadConfig), []);
  });
});
