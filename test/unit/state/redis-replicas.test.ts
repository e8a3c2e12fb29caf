import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createReplicaCounts } from '../../../src/state/redis-replicas.ts';

/** `INFO replication` of a master. @param offsets of its replicas that are online */
const report = (replicationId: string, ...offsets: readonly number[]) =>
  [
    'role:master',
    `connected_slaves:${offsets.length}`,
    ...offsets.map((offset, index) => `slave${index}:ip=::1,port=1,state=online,offset=${offset},lag=0`),
    `master_replid:${replicationId}`,
    '',
  ].join('\r\n');

describe('the number of replicas that must confirm a write', () => {
  test('is unknown before the first report, unless it is configured', () => {
    assert.equal(createReplicaCounts('all').required('master'), undefined);
    assert.equal(createReplicaCounts(2).required('master'), 2);
  });

  test('is the largest number that was connected at one time', () => {
    const counts = createReplicaCounts('all');
    const required = [report('a'), report('a', 1), report('a', 1, 1), report('a', 1), report('a')].map(
      (text) => {
        counts.observe('master', text);
        return counts.required('master');
      },
    );
    assert.deepEqual(required, [0, 1, 2, 2, 2]);
  });

  test('does not include a replica that is still loading, or has not confirmed anything', () => {
    const counts = createReplicaCounts('all');
    const loading = report('a', 5, 0).replace('state=online,offset=5', 'state=send_bulk,offset=5');
    counts.observe('master', loading);
    assert.equal(counts.required('master'), 0);
  });

  test('starts again if the master is another one or has been restarted', () => {
    const counts = createReplicaCounts('all');
    counts.observe('master', report('a', 1, 1));
    assert.equal(counts.isCurrent('master', report('b', 1)), false);
    counts.observe('master', report('b', 1));
    assert.equal(counts.isCurrent('master', report('b', 1)), true);
    assert.equal(counts.required('master'), 1);
  });

  test('is kept for each master, and discarded when a server is no longer a master', () => {
    const counts = createReplicaCounts('all');
    counts.observe('one', report('a', 1));
    counts.observe('other', report('b'));
    counts.retain(['other']);
    assert.deepEqual([counts.required('one'), counts.required('other')], [undefined, 0]);
  });

  test('is reported with the number of connected replicas while some are missing', () => {
    const counts = createReplicaCounts('all');
    counts.observe('one', report('a', 1, 1));
    counts.observe('other', report('b', 1));
    assert.equal(counts.problem(), undefined);
    counts.observe('one', report('a', 1));
    assert.match(
      counts.problem() ?? '',
      /2 Redis replicas .* only 1 is connected.* state\.confirm\.replicas/,
    );
    counts.observe('other', report('b'));
    assert.match(counts.problem() ?? '', /1 Redis replicas .* only 0 are connected/);
    counts.observe('one', report('a', 1, 1));
    counts.observe('other', report('b', 1));
    assert.equal(counts.problem(), undefined);
  });

  test('is awaited by a write that comes before the first report', async () => {
    const counts = createReplicaCounts('all');
    const observed = counts.observed('master');
    counts.observe('master', report('a', 1));
    await observed;
    assert.equal(counts.required('master'), 1);
  });
});
