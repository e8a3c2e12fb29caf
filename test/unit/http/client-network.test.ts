import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createNetworkOf } from '../../../src/http/client-network.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';

const trusted = createNetworkOf(['10.0.0.0/8', '192.0.2.5', 'fd00::/8']);
const forwarded = (...values: readonly string[]): HeaderFields =>
  values.map((value) => ['X-Forwarded-For', value] as const);

describe('the network that a request comes from', () => {
  test('is the peer’s, however loudly a stranger says otherwise', () => {
    assert.equal(trusted('203.0.113.9', forwarded('198.51.100.1')), '203.0.113.0/24');
    assert.equal(createNetworkOf([])('10.1.2.3', forwarded('198.51.100.1')), '10.1.2.0/24');
  });

  test('is what a trusted proxy says, and what those before it say only if they are trusted, too', () => {
    const invented = '192.0.2.99';
    assert.equal(trusted('10.0.0.1', forwarded(`${invented}, 203.0.113.9`)), '203.0.113.0/24');
    assert.equal(trusted('10.0.0.1', forwarded(invented, '203.0.113.9 , 192.0.2.5')), '203.0.113.0/24');
    assert.equal(trusted('10.0.0.1', forwarded('fd00::7, 10.0.0.2')), 'fd00:0:0::/48');
    assert.equal(trusted('10.0.0.1', []), '10.0.0.0/24');
  });

  test('is known of IPv6, and of IPv4 in its clothes', () => {
    assert.equal(trusted('::ffff:10.0.0.1', forwarded('2001:DB8:1:2::3')), '2001:db8:1::/48');
    assert.equal(trusted('::ffff:203.0.113.9', forwarded('198.51.100.1')), '203.0.113.0/24');
    assert.equal(trusted('fe80::1%eth0', []), 'fe80:0:0::/48');
    assert.equal(trusted('::1', []), '0:0:0::/48');
  });

  test('is not known of what is no address, and never quotes it', () => {
    for (const value of ['canary', '203.0.113.9:80', '', 'unknown', '1.2.3.4.5', 'for=203.0.113.9'])
      assert.equal(trusted('10.0.0.1', forwarded(value)), undefined, value);
    assert.equal(trusted(undefined, []), undefined);
  });
});
