import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addressParts, createNetworkMatcher, isNetwork } from '../../../src/config/network-list.ts';

describe('a list of networks', () => {
  test('contains the addresses of its networks, in both notations of IPv4', () => {
    const matches = createNetworkMatcher(['10.1.0.0/16', '192.0.2.7', '2001:db8::/32', '::1']);
    for (const address of ['10.1.2.3', '192.0.2.7', '::ffff:10.1.2.3', '2001:db8:1::1', '::1'])
      assert.ok(matches(address), address);
    for (const address of [
      '10.2.0.1',
      '192.0.2.8',
      '2001:db9::1',
      '::ffff:10.2.0.1',
      '',
      'localhost',
      '10.1.2.3 ',
    ])
      assert.ok(!matches(address), address);
    assert.ok(!createNetworkMatcher([])('127.0.0.1'));
  });

  test('accepts addresses and networks only', () => {
    for (const text of ['10.0.0.1', '10.0.0.0/8', '::/0', '::1/128']) assert.ok(isNetwork(text), text);
    for (const text of ['10.0.0.0/33', '::1/129', '10.0.0.0/8/8', '10.0.0/8', 'proxy.example', '', '/8'])
      assert.ok(!isNetwork(text), text);
  });
});

test('the parts of an address are four numbers or eight groups', () => {
  assert.deepEqual(addressParts('192.0.2.1'), ['192', '0', '2', '1']);
  assert.deepEqual(addressParts('::FFFF:192.0.2.1'), ['192', '0', '2', '1']);
  assert.deepEqual(addressParts('2001:DB8::1%eth0'), ['2001', 'db8', '0', '0', '0', '0', '0', '1']);
  assert.deepEqual(addressParts('::'), Array(8).fill('0'));
  assert.deepEqual(addressParts('example'), []);
});
