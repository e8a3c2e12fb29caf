import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { IdentitiesRecord, TenantRecord } from '../../../src/identities/identities-record.ts';
import { createRecordedTenants } from '../../../src/identities/recorded-names.ts';

const tenant = (ids: string[], names: string[], more: Partial<TenantRecord> = {}): TenantRecord => ({
  ids,
  names,
  credentials: [],
  ...more,
});

const record: IdentitiesRecord = {
  v: 1,
  version: 3,
  earlierRelease: false,
  tenants: [
    tenant(['acme', 'old'], ['beta', 'acme', 'old']),
    tenant(['acme#2'], ['acme']),
    tenant(['gone'], ['gone'], { retired: true }),
    tenant(['gone#2'], ['gone']),
  ],
  environments: [],
};

const { recordedAs, nameOf } = createRecordedTenants({ known: () => record });

describe('the tenants in records of requests', () => {
  test('are found by the name in use, otherwise by a former one', () => {
    assert.deepEqual(recordedAs('beta'), ['acme', 'old', 'beta#?']);
    assert.deepEqual(recordedAs('acme'), ['acme#2', 'acme#?']);
    assert.deepEqual(recordedAs('old'), ['acme', 'old', 'old#?']);
    assert.deepEqual(recordedAs('gone'), ['gone', 'gone#2', 'gone#?']);
    assert.deepEqual(recordedAs('nobody'), ['nobody', 'nobody#?']);
  });

  test('are shown with the name in use', () => {
    assert.deepEqual(['acme', 'old', 'acme#2', 'gone#2', 'nobody'].map(nameOf), [
      'beta',
      'beta',
      'acme',
      'gone',
      'nobody',
    ]);
    assert.equal(nameOf('acme#?'), 'acme', 'an identity that was not known');
  });

  test('have their recorded names while the identities are not known', () => {
    const unknown = createRecordedTenants({ known: () => undefined });
    assert.deepEqual(unknown.recordedAs('shop'), ['shop', 'shop#?']);
    assert.equal(unknown.nameOf('shop'), 'shop');
  });
});
