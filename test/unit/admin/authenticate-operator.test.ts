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

describe('the configured operators', () => {
  test('are those of the configuration if there is no token', () => {
    assert.deepEqual(configuredOperators(settings([olga]), undefined), { operators: [olga] });
  });

  test('include "admin" if there is a token', () => {
    assert.deepEqual(configuredOperators(settings([]), 'secret'), { operators: [admin('secret')] });
    assert.deepEqual(configuredOperators(settings([olga]), 'secret'), { operators: [olga, admin('secret')] });
  });

  test('are "admin" with a newly generated token on each start if nothing is configured', () => {
    const runs = [1, 2].map(() => configuredOperators(settings([]), undefined));
    for (const { operators, generatedToken = '' } of runs) {
      assert.match(generatedToken, /^[\w-]{32}$/); // 24 bytes
      assert.deepEqual(operators, [admin(generatedToken)]);
    }
    assert.notEqual(runs[0]?.generatedToken, runs[1]?.generatedToken);
  });
});
