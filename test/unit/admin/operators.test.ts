import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { auditName, createCredentialsReader, roleOf, sha256 } from '../../../src/admin/operators.ts';
import { configOf } from '../../kit/gateway.ts';

const olga = { name: 'olga', tokenSha256: sha256('token of olga'), role: 'read' } as const;
const admin = (token: string) => ({ name: 'admin', tokenSha256: sha256(token), role: 'operate' });
const roles = { operate: ['on-call'], read: ['support'] };

const settings = (section: object) =>
  configOf({ environments: { sandbox: { baseUrl: 'https://bank.example' } }, admin: section }).admin;

/** Reads the operators of these settings. @returns also the generated tokens */
function readOperators(section: object, token?: string) {
  const generated: string[] = [];
  const read = createCredentialsReader(
    (text) => generated.push(text),
    token === undefined ? {} : { PENSTOCK_ADMIN_TOKEN: token },
  );
  return { operators: read(settings(section)).operators, generated, read };
}

describe('the operators with tokens', () => {
  test('are those of the configuration if there is no other token', () => {
    const { operators, generated } = readOperators({ operators: [olga] });
    assert.deepEqual([operators, generated], [[olga], []]);
  });

  test('include "admin" if there is a token in the environment', () => {
    assert.deepEqual(readOperators({}, 'secret').operators, [admin('secret')]);
    assert.deepEqual(readOperators({ operators: [olga] }, 'secret').operators, [olga, admin('secret')]);
  });

  test('are "admin" with a new token for each start if nobody could sign in, and the same one after a reload', () => {
    const runs = [1, 2].map(() => readOperators({}));
    for (const { operators, generated, read } of runs) {
      const [token = ''] = generated;
      assert.match(token, /^[\w-]{32}$/); // 24 bytes
      assert.deepEqual(operators, [admin(token)]);
      assert.deepEqual(read(settings({})).operators, operators);
      assert.equal(generated.length, 1);
    }
    assert.notEqual(runs[0]?.generated[0], runs[1]?.generated[0]);
  });

  test('are none if operators sign in at a proxy or at a provider', () => {
    const proxy = { trustedProxies: ['10.0.0.7'], proxySignIn: { roles } };
    const oidc = { oidc: { issuer: 'https://login.example', clientId: 'penstock', roles } };
    for (const section of [proxy, oidc]) assert.deepEqual(readOperators(section).operators, []);
  });
});

describe('the role of a person', () => {
  test('is the highest one of the groups', () => {
    assert.equal(roleOf(['support', 'on-call'], roles), 'operate');
    assert.equal(roleOf(['support'], roles), 'read');
  });

  test('is none without a group that has one, also for an empty name', () => {
    assert.equal(roleOf([], roles), undefined);
    assert.equal(roleOf(['', 'On-Call', 'on-call '], roles), undefined);
  });

  test('is read for everybody if the configuration says so', () => {
    assert.equal(roleOf([], { operate: ['on-call'], read: 'any' }), 'read');
  });
});

describe('the name in the audit log', () => {
  test('is never that of an operator with a token, of the shared token or of the gateway', () => {
    for (const name of ['olga', 'admin', 'gateway', ' olga\n', 'ol\u200bga', 'olga\u2060', 'ad\u00admin'])
      assert.match(auditName(name, 'oidc', [olga]), /^(olga|admin|gateway) \(oidc\)$/);
    assert.equal(auditName('Olga', 'proxy', [olga]), 'Olga');
  });

  test('is never empty', () => {
    for (const name of ['', ' ', '\u200b', '\u202e\u2060'])
      assert.equal(auditName(name, 'proxy', []), 'unnamed (proxy)');
  });

  test('contains no characters that change the text around it, and at most 128 in all', () => {
    assert.equal(auditName('ann\u202e\r\nroot', 'oidc', []), 'ann root');
    assert.equal(auditName('x'.repeat(1_000), 'oidc', []).length, 128);
  });
});
