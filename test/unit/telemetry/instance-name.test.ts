import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newInstanceName } from '../../../src/telemetry/instance-name.ts';

test('instances of one host have different names, which begin with the first label of the host', () => {
  const [one, other] = [newInstanceName('gateway-0.payments.example'), newInstanceName('gateway-0')];
  for (const name of [one, other]) assert.match(name, /^gateway-0-[0-9a-f]{12}$/);
  assert.notEqual(one, other);
});

test('a name contains only letters, digits, hyphens and underscores, whatever the host is called', () => {
  for (const host of ['', '.', 'a b\n"', 'x'.repeat(500)])
    assert.match(newInstanceName(host), /^[\w-]{13,80}$/);
});
