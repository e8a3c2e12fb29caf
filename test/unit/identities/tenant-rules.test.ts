import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TenantRecord } from '../../../src/identities/identities-record.ts';
import type { TenantIdentitySettings } from '../../../src/identities/identity-settings.ts';
import { applyTenantSettings } from '../../../src/identities/tenant-rules.ts';

/** A recorded tenant: ids, names and keys, each separated by spaces. */
const recorded = (ids: string, names: string, keys = ''): TenantRecord => ({
  ids: ids.split(' '),
  names: names.split(' '),
  credentials: keys.split(' ').filter(Boolean),
});

/** A configured tenant with its keys. */
const tenant = (name: string, keys = '', formerly: readonly string[] = []): TenantIdentitySettings => ({
  name,
  formerly,
  credentials: keys
    .split(' ')
    .filter(Boolean)
    .map((id) => ({ id, kind: 'API key', client: `client of ${name}` })),
});

interface Case {
  readonly title: string;
  readonly record: readonly TenantRecord[];
  readonly tenants: readonly TenantIdentitySettings[];
  readonly retired?: readonly string[];
  readonly recordsAnonymous?: boolean;
  /** The record afterwards, or what the refusal says. */
  readonly expected: readonly TenantRecord[] | RegExp;
}

const anonymous = tenant('anonymous');

const cases: readonly Case[] = [
  {
    title: 'a new tenant continues two tenants of which one has the former name of the other',
    record: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
    tenants: [tenant('all', 'k1 k2', ['store', 'shop'])],
    expected: [recorded('shop shop#2', 'all store shop', 'k1 k2')],
  },
  {
    title: 'an old configuration of a renamed tenant does not continue a later tenant with its former name',
    record: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
    tenants: [tenant('store', 'k1', ['shop'])],
    expected: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
  },
  {
    title: 'a tenant of a new installation is identified by its name',
    record: [],
    tenants: [tenant('shop', 'k1'), tenant('rival', 'k2')],
    expected: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
  },
  {
    title: 'a tenant without a change keeps its record',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [tenant('shop', 'k1')],
    expected: [recorded('shop', 'shop', 'k1')],
  },
  {
    title: 'a tenant that is configured again with a new key is the same tenant',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [tenant('shop', 'k9')],
    expected: [recorded('shop', 'shop', 'k1 k9')],
  },
  {
    title: 'a removed tenant stays recorded',
    record: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
    tenants: [tenant('shop', 'k1')],
    expected: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
  },
  {
    title: 'a renamed tenant keeps its identity',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [tenant('store', 'k1', ['shop'])],
    expected: [recorded('shop', 'store shop', 'k1')],
  },
  {
    title: 'a tenant that was renamed before may omit the former name',
    record: [recorded('shop', 'store shop', 'k1')],
    tenants: [tenant('store', 'k1')],
    expected: [recorded('shop', 'store shop', 'k1')],
  },
  {
    title: 'an instance that still has the old configuration finds a renamed tenant by its key',
    record: [recorded('shop', 'store shop', 'k1')],
    tenants: [tenant('shop', 'k1')],
    expected: [recorded('shop', 'shop store', 'k1')],
  },
  {
    title: 'a new tenant with the former name of another one is a tenant of its own',
    record: [recorded('shop', 'store shop', 'k1')],
    tenants: [tenant('store', 'k1'), tenant('shop', 'k2')],
    expected: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
  },
  {
    title: 'a former name that a new tenant uses now is not merged again by an old configuration',
    record: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
    tenants: [tenant('store', 'k1', ['shop'])],
    expected: [recorded('shop', 'store shop', 'k1'), recorded('shop#2', 'shop', 'k2')],
  },
  {
    title: 'two tenants become one, which keeps both identities',
    record: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
    tenants: [tenant('shop', 'k1 k2', ['rival'])],
    expected: [recorded('shop rival', 'shop rival', 'k1 k2')],
  },
  {
    title: 'two tenants become a third one',
    record: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
    tenants: [tenant('group', 'k1 k2', ['shop', 'rival'])],
    expected: [recorded('shop rival', 'group shop rival', 'k1 k2')],
  },
  {
    title: 'a former name that only an earlier release can have recorded is the identity',
    record: [],
    tenants: [tenant('store', 'k1', ['shop'])],
    expected: [recorded('shop', 'store shop', 'k1')],
  },
  {
    title: 'a renamed tenant is renamed again by any of its former names',
    record: [recorded('shop', 'store shop', 'k1')],
    tenants: [tenant('market', 'k1', ['shop'])],
    expected: [recorded('shop', 'market store shop', 'k1')],
  },
  {
    title: 'a renamed tenant without formerly is refused',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [tenant('store', 'k1')],
    expected:
      /^the API key of client "client of store" is recorded for tenant "shop".*tenants: \{ store: \{ formerly: \[shop\] \} \}.*retired: \[shop\]/,
  },
  {
    title: 'a key that moves to another configured tenant is refused',
    record: [recorded('shop', 'shop', 'k1 k2'), recorded('rival', 'rival', 'k3')],
    tenants: [tenant('shop', 'k1'), tenant('rival', 'k2 k3')],
    expected: /recorded for tenant "shop".*give the client another one, or set its tenant to shop$/,
  },
  {
    title: 'two names that exchange their keys are refused',
    record: [recorded('shop', 'shop', 'k1'), recorded('rival', 'rival', 'k2')],
    tenants: [tenant('shop', 'k2'), tenant('rival', 'k1')],
    expected: /recorded for tenant "rival".*recorded for tenant "shop"/s,
  },
  {
    title: 'a former name that another configured tenant continues is refused',
    record: [recorded('shop', 'store shop', 'k1')],
    tenants: [tenant('store', 'k1'), tenant('rival', 'k2', ['shop'])],
    expected: /tenants\.rival\.formerly names "shop", but tenant "store" already continues it/,
  },
  {
    title: 'the key of a retired tenant can be given to another tenant',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [tenant('store', 'k1')],
    retired: ['shop'],
    expected: [{ ...recorded('shop', 'shop', 'k1'), retired: true }, recorded('store', 'store', 'k1')],
  },
  {
    title: 'a new tenant with the name of a retired one is another tenant',
    record: [{ ...recorded('shop', 'shop', 'k1'), retired: true }],
    tenants: [tenant('shop', 'k1')],
    expected: [{ ...recorded('shop', 'shop', 'k1'), retired: true }, recorded('shop#2', 'shop', 'k1')],
  },
  {
    title: 'the tenant anonymous is not recorded before its first write',
    record: [],
    tenants: [anonymous],
    expected: [],
  },
  {
    title: 'the tenant anonymous is recorded by its first write',
    record: [],
    tenants: [anonymous],
    recordsAnonymous: true,
    expected: [recorded('anonymous', 'anonymous')],
  },
  {
    title: 'clients that are configured after anonymous payments are refused',
    record: [recorded('anonymous', 'anonymous')],
    tenants: [tenant('shop', 'k1')],
    expected: /formerly: \[anonymous\].*retired: \[anonymous\]/,
  },
  {
    title: 'a tenant continues anonymous payments',
    record: [recorded('anonymous', 'anonymous')],
    tenants: [tenant('shop', 'k1', ['anonymous'])],
    expected: [recorded('anonymous', 'shop anonymous', 'k1')],
  },
  {
    title: 'anonymous payments are retired',
    record: [recorded('anonymous', 'anonymous')],
    tenants: [tenant('shop', 'k1')],
    retired: ['anonymous'],
    expected: [{ ...recorded('anonymous', 'anonymous'), retired: true }, recorded('shop', 'shop', 'k1')],
  },
  {
    title: 'a configuration without clients finds the tenant that continued the anonymous payments',
    record: [recorded('anonymous', 'shop anonymous', 'k1')],
    tenants: [anonymous],
    expected: [recorded('anonymous', 'anonymous shop', 'k1')],
  },
  {
    title: 'clients that are removed are unknown to the tenant anonymous',
    record: [recorded('shop', 'shop', 'k1')],
    tenants: [anonymous],
    recordsAnonymous: true,
    expected: [recorded('shop', 'shop', 'k1'), recorded('anonymous', 'anonymous')],
  },
];

describe('the rules for tenants', () => {
  for (const { title, record, tenants, retired = [], recordsAnonymous = false, expected } of cases) {
    test(title, () => {
      const before = structuredClone(record);
      const result = applyTenantSettings(record, { tenants, retired }, recordsAnonymous);
      assert.deepEqual(record, before, 'the record is not changed in place');
      if (expected instanceof RegExp) {
        assert.match(result.contradictions.join('\n'), expected);
        return;
      }
      assert.deepEqual(result, { tenants: expected, contradictions: [] });
      const again = applyTenantSettings(result.tenants, { tenants, retired }, recordsAnonymous);
      if (retired.length === 0) assert.deepEqual(again, result, 'the same settings change nothing more');
    });
  }
});
