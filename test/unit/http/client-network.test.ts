import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createNetworkOf } from '../../../src/http/client-network.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';

const trusted = createNetworkOf(['10.0.0.0/8', '192.0.2.5', 'fd00::/8']);
const forwarded = (...values: readonly string[]): HeaderFields =>
  values.map((value) => ['X-Forwarded-For', value] as const);

describe('the network of a client', () => {
  test('is the network of the peer if the peer is not a trusted proxy, regardless of X-Forwarded-For', () => {
    assert.equal(trusted('203.0.113.9', forwarded('198.51.100.1')), '203.0.113.0/24');
    assert.equal(createNetworkOf([])('10.1.2.3', forwarded('198.51.100.1')), '10.1.2.0/24');
  });

  test('is read from X-Forwarded-For up to the first address that is not a trusted proxy', () => {
    const forged = '192.0.2.99';
    assert.equal(trusted('10.0.0.1', forwarded(`${forged}, 203.0.113.9`)), '203.0.113.0/24');
    assert.equal(trusted('10.0.0.1', forwarded(forged, '203.0.113.9 , 192.0.2.5')), '203.0.113.0/24');
    assert.equal(trusted('10.0.0.1', forwarded('fd00::7, 10.0.0.2')), 'fd00:0:0::/48');
    assert.equal(trusted('10.0.0.1', []), '10.0.0.0/24');
  });

  test('is found for IPv6 addresses and IPv4-mapped IPv6 addresses', () => {
    assert.equal(trusted('::ffff:10.0.0.1', forwarded('2001:DB8:1:2::3')), '2001:db8:1::/48');
    assert.equal(trusted('::ffff:203.0.113.9', forwarded('198.51.100.1')), '203.0.113.0/24');
    assert.equal(trusted('fe80::1%eth0', []), 'fe80:0:0::/48');
    assert.equal(trusted('::1', []), '0:0:0::/48');
  });

  test('is undefined for text that is not an address', () => {
    for (const value of ['canary', '203.0.113.9:80', '', 'unknown', '1.2.3.4.5', 'for=203.0.113.9'])
      assert.equal(trusted('10.0.0.1', forwarded(value)), undefined, value);
    assert.equal(trusted(undefined, []), undefined);
  });
});
