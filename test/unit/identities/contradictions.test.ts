import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  contradictionsIn,
  type IdentitySettings,
  identitySettingsOf,
  isAnonymousUnclaimed,
  missingIn,
} from '../../../src/identities/contradictions.ts';
import type { StoredIdentities } from '../../../src/store/identities.ts';
import { configOf } from '../../kit/gateway.ts';

const [shopKey, rivalKey, newKey] = ['ab'.repeat(32), 'cd'.repeat(32), 'ef'.repeat(32)];

/** The tenant `shop`, which was renamed to `store`, the tenant `rival`, and an environment at its first address. */
const stored: StoredIdentities = {
  revision: 0,
  tenants: [
    { name: 'rival', id: 'rival' },
    { name: 'shop', id: 'shop' },
    { name: 'store', id: 'shop' },
  ],
  environments: [{ name: 'sandbox', id: 'sandbox' }],
  credentials: new Map([
    [shopKey, 'shop'],
    [rivalKey, 'rival'],
  ]),
  addresses: new Map([['sandbox', 'https://bank.example/psd2']]),
};

const settings = ({ clients = [], environments }: { clients?: object[]; environments?: object } = {}) =>
  identitySettingsOf(
    configOf({
      clients,
      environments: environments ?? { sandbox: { baseUrl: 'https://bank.example/psd2/' } },
      listen: { tls: { certFile: 'c', keyFile: 'k', clientCaFile: 'a', clientCertificate: 'optional' } },
    }),
  );

const contradictions = (configured: IdentitySettings, hasUnclaimed = false) =>
  contradictionsIn(stored, configured, hasUnclaimed);

describe('a configuration', () => {
  test('names tenants, credentials as they are configured, and the origin and base path of environments', () => {
    const clients = [
      { name: 'till', tenant: 'shop', apiKeySha256: shopKey.toUpperCase(), certificateSha256: rivalKey },
      { name: 'shop', apiKeySha256: newKey },
    ];
    assert.deepEqual(settings({ clients }), {
      tenants: ['shop'],
      credentials: [
        { hash: shopKey, kind: 'API key', client: 'till', tenant: 'shop' },
        { hash: rivalKey, kind: 'certificate', client: 'till', tenant: 'shop' },
        { hash: newKey, kind: 'API key', client: 'shop', tenant: 'shop' },
      ],
      environments: [{ name: 'sandbox', address: 'https://bank.example/psd2' }],
    });
    assert.deepEqual(settings().tenants, ['anonymous']);
  });

  test('that agrees with the database contradicts nothing, under each name of a tenant, and with new keys and tenants', () => {
    for (const tenant of ['shop', 'store'])
      assert.deepEqual(contradictions(settings({ clients: [{ name: tenant, apiKeySha256: shopKey }] })), []);
    assert.deepEqual(contradictions(settings({ clients: [{ name: 'new', apiKeySha256: newKey }] })), []);
  });

  test('without clients is refused if the database knows those of another tenant than anonymous', () => {
    assert.match(contradictions(settings()).join(), /configure the clients$/);
    const [shop, anonymous] = [
      { name: 'shop', id: 'shop' },
      { name: 'anonymous', id: 'anonymous' },
    ];
    const withTenants = (tenants: StoredIdentities['tenants'], owner: string) =>
      contradictionsIn(
        { ...stored, tenants, credentials: new Map([[shopKey, owner]]) },
        settings(),
        false,
      ).join();
    assert.match(withTenants([shop], 'shop'), /: penstock tenants rename shop anonymous$/);
    assert.match(withTenants([shop, anonymous], 'shop'), /configure the clients$/);
    const [isAnonymous, wasAnonymous] = [
      { name: 'anonymous', id: 'shop' },
      { name: 'shop', id: 'anonymous' },
    ];
    assert.equal(withTenants([shop, isAnonymous], 'shop'), '');
    assert.equal(withTenants([anonymous, wasAnonymous], 'anonymous'), '');
  });

  test('adds what the database lacks, with the id of a renamed tenant', () => {
    const clients = [
      { name: 'till', tenant: 'store', apiKeySha256: newKey },
      { name: 'new', apiKeySha256: '12'.repeat(32) },
    ];
    const environments = {
      active: 'a',
      a: { baseUrl: 'https://a.example' },
      sandbox: { baseUrl: 'https://b.example' },
    };
    assert.deepEqual(missingIn(stored, settings({ clients, environments })), {
      tenants: ['new'],
      environments: ['a'],
      credentials: [
        { hash: newKey, tenant: 'shop' },
        { hash: '12'.repeat(32), tenant: 'new' },
      ],
    });
  });

  test('is refused with all contradictions, each with the commands that resolve it', () => {
    const clients = [
      { name: 'till', tenant: 'market', apiKeySha256: shopKey },
      { name: 'rival', tenant: 'shop', certificateSha256: rivalKey },
      { name: 'store', apiKeySha256: newKey },
    ];
    const environments = { sandbox: { baseUrl: 'https://new.example' } };
    assert.deepEqual(contradictions(settings({ clients, environments }), true), [
      'clients: the API key of client "till" belongs to tenant "store", and the configuration gives it to tenant "market"; ' +
        'if it is the same tenant under a new name, use: penstock tenants rename store market; ' +
        'if the client works for another tenant from now on, use: penstock tenants move-credential till market',
      'clients: the certificate of client "rival" belongs to tenant "rival", and the configuration gives it to tenant "shop"; ' +
        'if it is the same tenant under a new name, use: penstock tenants rename rival shop; ' +
        'if the client works for another tenant from now on, use: penstock tenants move-credential rival shop',
      'clients: payments were made without clients, as tenant "anonymous"; give them to the tenant that made them: ' +
        'penstock tenants rename anonymous NEW',
      'environments.sandbox.baseUrl: payments were sent to https://bank.example/psd2, and the configuration says https://new.example; ' +
        'if it is the same bank at a new address, use: penstock environment moved sandbox --to https://new.example; ' +
        'otherwise give the other bank another name',
      'clients: "shop" and "store" are names of one tenant, which was renamed; use one of them, and another name for another tenant',
    ]);
  });
});

describe('payments without clients', () => {
  const anonymous = { name: 'anonymous', id: 'anonymous' };
  const clients = [{ name: 'shop', apiKeySha256: shopKey }];

  test('are looked for if the tenant anonymous is known, and neither configured, nor renamed, nor that of a client', () => {
    const known = { ...stored, tenants: [...stored.tenants, anonymous] };
    assert.equal(isAnonymousUnclaimed(known, settings({ clients })), true);
    assert.equal(isAnonymousUnclaimed(stored, settings({ clients })), false);
    assert.equal(isAnonymousUnclaimed(known, settings()), false);
    const renamed = { ...stored, tenants: [...known.tenants, { name: 'first', id: 'anonymous' }] };
    assert.equal(isAnonymousUnclaimed(renamed, settings({ clients })), false);
    const ofClient = { ...known, credentials: new Map([[newKey, 'anonymous']]) };
    assert.equal(isAnonymousUnclaimed(ofClient, settings({ clients })), false);
  });
});
