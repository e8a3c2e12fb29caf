/** What is wrong with the files that a configuration names is told before anything is started, all at once. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig, loadConfigAndFiles } from '../../../src/config/load.ts';
import { withFile } from '../../kit/folder.ts';
import { lifeOfAllTests } from '../../kit/life.ts';
import { createAuthority } from '../../kit/openssl.ts';

const authority = createAuthority(lifeOfAllTests());
const [own, other] = [authority.issue('own'), authority.issue('other')];
const expired = authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' });
const empty = join(authority.folder, 'empty');
writeFileSync(empty, '');
const nowhere = join(authority.folder, 'nowhere');

/** The faults, without the name of the file. */
const faultsIn = (text: string, variables = {}, load = loadConfigAndFiles): readonly string[] =>
  withFile(text, (file) => {
    const loaded = load(file, variables);
    return loaded.kind === 'valid' ? [] : loaded.faults.map((fault) => fault.replace(file, ''));
  });

const unreadable = 'this file cannot be read; name one that is there and that the gateway may read';

const everythingWrong = `listen:
  tls:
    certFile: ${own.certFile}
    keyFile: ${other.keyFile}
    clientCaFile: ${empty}
environments:
  active: a
  a:
    baseUrl: https://a.example
    tls:
      certFile: ${expired.certFile}
      keyFile: ${expired.keyFile}
      caFile: ${nowhere}
  b:
    baseUrl: https://b.example
    tls: { caFile: ${own.keyFile} }
    signing:
      certFile: ${own.certFile}
      keyFile: ${own.keyFile}
  c:
    baseUrl: https://c.example
    signing:
      certFile: ${empty}
      keyFile: ${empty}
admin:
  tokenFile: ${nowhere}
state:
  encryptionKeyFile: ${nowhere}
`;

describe('the files that a configuration names', () => {
  test('have all their faults told at once, each with its line and its setting', () => {
    assert.deepEqual(faultsIn(everythingWrong), [
      ':4 listen.tls.keyFile: this file holds the key of another certificate',
      ':5 listen.tls.clientCaFile: this file holds no certificate as PEM, or one that is cut off',
      ':11 environments.a.tls.certFile: this file holds a certificate that has expired on 2026-01-01T00:00:00.000Z',
      `:13 environments.a.tls.caFile: ${unreadable}`,
      ':16 environments.b.tls.caFile: this file holds no certificate as PEM, or one that is cut off',
      ':19 environments.b.signing.keyFile: this file holds no key for rsa-sha256',
      ':23 environments.c.signing.certFile: this file holds no certificate as PEM',
      ':24 environments.c.signing.keyFile: this file holds no private key as PEM without a passphrase',
      `:26 admin.tokenFile: ${unreadable}`,
      `:28 state.encryptionKeyFile: ${unreadable}`,
    ]);
  });

  test('are looked for from the working directory if their path is relative: the fault says where that is, not the path', () => {
    const text =
      'environments:\n  sandbox: { baseUrl: https://a.example }\nadmin:\n  tokenFile: the-token-itself\n';
    const where = `; a relative path begins at the working directory, ${process.cwd()}`;
    assert.deepEqual(faultsIn(text), [`:4 admin.tokenFile: ${unreadable}${where}`]);
  });

  test('are told together with faults of other kinds', () => {
    const text = `environments:\n  active: c\n  a: { baseUrl: http://a.example }\n  b:\n    baseUrl: https://me:secret@b.example\n  c:\n    baseUrl: https://c.example\n    tls: { caFile: ${nowhere} }\n`;
    assert.deepEqual(
      faultsIn(text).map((fault) => fault.slice(0, 40)),
      [
        ':3 environments.a.baseUrl: plain http: i',
        ':5 environments.b.baseUrl: an address mu',
        ':8 environments.c.tls.caFile: this file ',
      ],
    );
  });

  test('are fine if they are', () => {
    const text = `environments: { a: { baseUrl: https://a.example, tls: { certFile: ${own.certFile}, keyFile: ${own.keyFile}, caFile: ${authority.certFile} }, signing: { certFile: ${own.certFile}, keyFile: ${own.keyFile}, algorithm: ecdsa-sha256 } } }`;
    assert.deepEqual(faultsIn(text), []);
  });

  test('are told with the variable that names them', () => {
    const variables = { PENSTOCK_ENVIRONMENTS_A_TLS_CA_FILE: nowhere };
    assert.deepEqual(faultsIn('environments: { a: { baseUrl: https://a.example } }', variables), [
      `PENSTOCK_ENVIRONMENTS_A_TLS_CA_FILE environments.a.tls.caFile: ${unreadable}`,
    ]);
  });

  test('need no token file if the variable holds the token', () => {
    const text = `environments: { a: { baseUrl: https://a.example } }\nadmin: { tokenFile: ${nowhere} }`;
    assert.deepEqual(faultsIn(text, { PENSTOCK_ADMIN_TOKEN: 'x' }), []);
  });

  test('are left alone by commands that only speak to a running gateway', () => {
    assert.deepEqual(faultsIn(everythingWrong, {}, loadConfig), []);
  });
});
