import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTenantShares, sharePeriodMs } from '../../../src/request-records/tenant-shares.ts';
import type { RecordLane } from '../../../src/telemetry/unstored-requests.ts';

const recordBytes = 100;

/** Shares of 100 KB in each period. */
function createShares() {
  let nowMs = 0;
  const settings = () => ({ maxStoredPerTenant: 10 * 100_000, keepFor: 10 * sharePeriodMs });
  const shares = createTenantShares(settings, () => nowMs);
  /** Adds records until one is refused. @returns how many bytes were added */
  const fill = (tenant: string, lane: RecordLane, atMs: number) => {
    nowMs = atMs;
    let bytes = 0;
    for (; shares.admit(tenant, lane); bytes += recordBytes) shares.add(tenant, recordBytes);
    return bytes;
  };
  return { shares, fill };
}

describe('the share of a tenant in the records of requests', () => {
  test('is used by polls up to a half, then by reads up to three quarters, then by payments', () => {
    const { fill } = createShares();
    const end = sharePeriodMs - 1;
    assert.equal(fill('one', 'status', end), 50_000);
    assert.equal(fill('one', 'read', end), 25_000);
    assert.equal(fill('one', 'write', end), 25_000);
    assert.equal(fill('one', 'write', end), 0);
  });

  test('does not depend on the records of other tenants', () => {
    const { fill } = createShares();
    assert.equal(fill('one', 'write', 0), 100_000);
    assert.equal(fill('other', 'write', 0), 100_000);
    assert.equal(fill('', 'refused', sharePeriodMs - 1), 50_000);
  });

  test('becomes available to polls and reads gradually, and to payments at once', () => {
    const { fill } = createShares();
    assert.equal(fill('one', 'status', 0), 5_000);
    assert.equal(fill('one', 'status', sharePeriodMs / 2), 25_000);
    assert.equal(fill('one', 'write', 0), 70_000);
  });

  test('includes what the other instances have stored', () => {
    const { shares, fill } = createShares();
    shares.add('one', 1_200);
    shares.setBytesOfOthers(0, 'one', 98_000);
    shares.setBytesOfOthers(1, 'one', 1); // another period
    assert.equal(fill('one', 'write', 0), 800);
  });

  test('is new in each period', () => {
    const { shares, fill } = createShares();
    assert.equal(fill('one', 'write', 0), 100_000);
    assert.equal(fill('one', 'write', sharePeriodMs), 100_000);
    const rows = shares.takeChanged();
    assert.deepEqual(
      rows.map(({ period, bytes, not_stored: notStored }) => [period, bytes, notStored]),
      [
        [0, 100_000, 1],
        [1, 100_000, 1],
      ],
    );
  });

  test('is reported as totals of what has changed', () => {
    const { shares } = createShares();
    const row = { period: 0, tenant: 'one', not_stored: 0 };
    shares.add('one', 100);
    shares.add('other', 1);
    assert.deepEqual(shares.takeChanged(), [
      { ...row, bytes: 100 },
      { ...row, tenant: 'other', bytes: 1 },
    ]);
    shares.add('one', 100);
    assert.deepEqual(shares.takeChanged(), [{ ...row, bytes: 200 }]);
    assert.deepEqual(shares.takeChanged(), []);
  });

  test('counts the records that are not stored', () => {
    const { shares, fill } = createShares();
    fill('one', 'write', 0);
    shares.addNotStored('other', 1);
    assert.deepEqual(
      shares.takeChanged().map(({ tenant, not_stored: notStored }) => [tenant, notStored]),
      [
        ['one', 1],
        ['other', 1],
      ],
    );
  });
});
