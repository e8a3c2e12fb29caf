import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSignInThrottle } from '../../../src/admin/sign-in-throttle.ts';

function throttleAt() {
  let nowMs = 5_000;
  const { countFailure } = createSignInThrottle(() => nowMs);
  const fail = (times: number, address = '192.0.2.1') =>
    Array.from({ length: times }, () => countFailure(address));
  return {
    fail,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}

const none = (seconds: readonly number[]) => seconds.every((one) => one === 0);

describe('the limit of failed attempts', () => {
  test('is 30 at once for each address, then one every two seconds', () => {
    const { fail, pass } = throttleAt();
    assert.ok(none(fail(30)));
    assert.deepEqual(fail(3), [2, 2, 2]);
    assert.ok(none(fail(30, '192.0.2.2')), 'another address');
    pass(2_000);
    assert.deepEqual(fail(2), [0, 2]);
    pass(500);
    assert.deepEqual(fail(1), [2]);
    pass(1_500);
    assert.deepEqual(fail(1), [0]);
  });

  test('is full again after a minute, and never higher', () => {
    const { fail, pass } = throttleAt();
    fail(31);
    pass(60_000);
    assert.ok(none(fail(30)));
    pass(3_600_000);
    const seconds = fail(31);
    assert.ok(none(seconds.slice(0, 30)));
    assert.equal(seconds[30], 2);
  });

  test('is common to the addresses of one IPv6 network, and to both notations of an IPv4 address', () => {
    const { fail } = throttleAt();
    fail(30, '2001:db8:1:2::1');
    assert.deepEqual(fail(1, '2001:db8:1:2:ffff::9'), [2]);
    assert.deepEqual(fail(1, '2001:db8:1:3::1'), [0]);
    fail(30, '192.0.2.1');
    assert.deepEqual(fail(1, '::ffff:192.0.2.1'), [2]);
  });
});
