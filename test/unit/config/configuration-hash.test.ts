import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configurationHash } from '../../../src/config/configuration-hash.ts';
import { configOf } from '../../kit/gateway.ts';

const [sandbox, production] = [
  { baseUrl: 'https://sandbox.bank.example' },
  { baseUrl: 'https://bank.example' },
];
const client = (name: string, digit: string) => ({ name, apiKeySha256: digit.repeat(64) });
const sections = {
  environments: { active: 'sandbox', sandbox, production },
  clients: [client('shop', '1'), client('invoices', '2')],
  deadlines: { write: '20s' },
};
const hashOf = (more: object = {}) => configurationHash(configOf({ ...sections, ...more }));

describe('the hash of a configuration', () => {
  test('is the same on all instances that have the same settings, in whichever order and unit', () => {
    assert.match(hashOf(), /^[0-9a-f]{64}$/);
    assert.equal(hashOf({ environments: { production, sandbox, active: 'sandbox' } }), hashOf());
    assert.equal(hashOf({ clients: sections.clients.toReversed() }), hashOf());
    assert.equal(hashOf({ deadlines: { write: '20000ms' } }), hashOf());
    assert.equal(hashOf({ statusCache: {} }), hashOf(), 'a default');
  });

  test('ignores what differs between instances, and secrets', () => {
    assert.equal(
      hashOf({
        listen: { host: '127.0.0.2', port: 8443, publicUrl: 'https://one.example' },
        admin: { host: '127.0.0.2', port: 9443, publicUrl: 'https://console.example' },
        log: { level: 'debug' },
      }),
      hashOf(),
    );
    assert.equal(hashOf({ clients: [client('shop', '3'), client('invoices', '2')] }), hashOf());
  });

  test('changes with every other setting', () => {
    const hashes = [
      hashOf(),
      hashOf({ deadlines: { write: '21s' } }),
      hashOf({ clients: [client('shop', '1')] }),
      hashOf({ environments: { ...sections.environments, active: 'production' } }),
      hashOf({ admin: { sessionTtl: '1h' } }),
      hashOf({ listen: { maxBody: '2MiB' } }),
    ];
    assert.equal(new Set(hashes).size, hashes.length);
  });
});
