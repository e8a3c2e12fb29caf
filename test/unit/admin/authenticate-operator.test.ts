import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { configuredOperators } from '../../../src/admin/authenticate-operator.ts';
import { configOf } from '../../kit/gateway.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const olga = { name: 'olga', tokenSha256: sha256('token of olga'), role: 'read' } as const;
const admin = (token: string) => ({ name: 'admin', tokenSha256: sha256(token), role: 'operate' });

const settings = (operators: readonly (typeof olga)[]) =>
  configOf({ environments: { sandbox: { baseUrl: 'https://bank.example' } }, admin: { operators } }).admin;

describe('the operators', () => {
  test('are those of the configuration', () => {
    assert.deepEqual(configuredOperators(settings([olga]), undefined), { operators: [olga] });
  });

  test('are "admin" besides, if there is a token', () => {
    assert.deepEqual(configuredOperators(settings([]), 'secret'), { operators: [admin('secret')] });
    assert.deepEqual(configuredOperators(settings([olga]), 'secret'), { operators: [olga, admin('secret')] });
  });

  test('are "admin" with a token made for this run, if nothing is configured: there is no default password', () => {
    const runs = [1, 2].map(() => configuredOperators(settings([]), undefined));
    for (const { operators, madeToken = '' } of runs) {
      assert.match(madeToken, /^[\w-]{32}$/); // 24 bytes
      assert.deepEqual(operators, [admin(madeToken)]);
    }
    assert.notEqual(runs[0]?.madeToken, runs[1]?.madeToken);
  });
});
