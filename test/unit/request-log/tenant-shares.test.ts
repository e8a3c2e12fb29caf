import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTenantShares } from '../../../src/request-log/tenant-shares.ts';
import type { RecordLane } from '../../../src/telemetry/recent-requests.ts';

const sliceMs = 600_000;
const recordBytes = 100;

/** Shares of 100 KB in each slice, of two tenants. */
function createShares(startMs = 0) {
  const settings = () => ({ maxStoredPerTenant: 10 * 100_000, keepFor: 10 * sliceMs });
  const shares = createTenantShares(settings, () => 2, startMs);
  /** Adds records until one is refused. @returns how many bytes were added */
  const fill = (tenant: string, lane: RecordLane, nowMs: number) => {
    let bytes = 0;
    for (; shares.admit(tenant, lane, nowMs); bytes += recordBytes) shares.add(tenant, recordBytes);
    return bytes;
  };
  return { shares, fill };
}

describe('the share of a tenant in the request log', () => {
  test('is used by polls up to a half, then by reads up to three quarters, then by payments', () => {
    const { fill } = createShares();
    const end = sliceMs - 1;
    assert.equal(fill('one', 'status', end), 50_000);
    assert.equal(fill('one', 'read', end), 25_000);
    assert.equal(fill('one', 'write', end), 25_000);
    assert.equal(fill('one', 'write', end), 0);
  });

  test('does not depend on the records of other tenants', () => {
    const { fill } = createShares();
    assert.equal(fill('one', 'write', 0), 100_000);
    assert.equal(fill('other', 'write', 0), 100_000);
    assert.equal(fill('', 'refused', sliceMs - 1), 50_000);
  });

  test('becomes available to polls and reads gradually, and to payments at once', () => {
    const { fill } = createShares();
    assert.equal(fill('one', 'status', 0), 5_000);
    assert.equal(fill('one', 'status', sliceMs / 2), 25_000);
    assert.equal(fill('one', 'write', 0), 70_000);
  });

  test('includes what the other instances have written', () => {
    const { shares, fill } = createShares();
    shares.add('one', 1_000);
    shares.onWritten(0, 'one', 1_000, 99_000);
    assert.equal(fill('one', 'write', 0), 1_000);
  });

  test('is new in each slice, except for what is not written yet', () => {
    const { shares, fill } = createShares();
    shares.add('one', 1_000);
    shares.onWritten(0, 'one', 1_000, 100_000);
    assert.equal(fill('one', 'write', 0), 0);
    assert.equal(fill('one', 'write', sliceMs), 100_000);
    assert.equal(fill('one', 'write', 2 * sliceMs), 0);
    shares.onWritten(1, 'one', 100_000, 100_000); // a write of the former slice
    assert.equal(fill('one', 'write', 2 * sliceMs), 100_000);
  });

  test('counts the records that are not stored', () => {
    const { shares, fill } = createShares();
    fill('one', 'write', 0);
    shares.admit('one', 'write', 0);
    shares.addNotStored('other');
    assert.deepEqual(
      shares.takeNotStored(),
      new Map([
        ['one', 2],
        ['other', 1],
      ]),
    );
    assert.deepEqual(shares.takeNotStored(), new Map());
  });

  test('limits what waits for the state: half of the memory for any tenant, and a part of the rest for each', () => {
    const settings = () => ({ maxStoredPerTenant: 1024 ** 4, keepFor: sliceMs });
    const shares = createTenantShares(settings, () => 3, 0);
    const fill = (tenant: string) => {
      let bytes = 0;
      for (; shares.admit(tenant, 'write', 0); bytes += 1_024) shares.add(tenant, 1_024);
      return bytes;
    };
    assert.equal(fill('one'), 2 * 1024 ** 2);
    for (const other of ['two', 'three', '']) assert.equal(fill(other), 512 * 1024);
    shares.onWritten(0, 'one', 2 * 1024 ** 2, 2 * 1024 ** 2);
    assert.equal(fill('one'), 512 * 1024, 'the others use three quarters of the first half');
  });

  test('does not depend on the number of tenants while most of them have few records', () => {
    const settings = () => ({ maxStoredPerTenant: 1024 ** 4, keepFor: sliceMs });
    const shares = createTenantShares(settings, () => 10_000, 0);
    for (let record = 0; record < 10_000; record++) {
      assert.ok(shares.admit('busy', 'status', 0), `record ${record}`);
      shares.add('busy', 100);
    }
  });
});
