import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkHealth } from '../../../src/state/redis-monitor.ts';

const report = (...lines: readonly string[]) => Promise.resolve(`# Memory\r\n${lines.join('\r\n')}\r\n`);
const noLimit = report('used_memory:1024', 'maxmemory:0', 'maxmemory_policy:noeviction');
const allSlots = report('cluster_state:ok', 'cluster_slots_assigned:16384', 'cluster_slots_fail:0');

/** The kind of health and the problem, as one text. */
async function problemOf(reports: readonly Promise<string>[], acceptsCommands = true) {
  const sources = { reports: () => reports, acceptsCommands: () => acceptsCommands };
  const health = await checkHealth(sources, () => undefined);
  return health.kind === 'healthy' ? 'healthy' : `${health.kind}: ${health.problem}`;
}

describe('the health check of Redis', () => {
  test('reports healthy if no node evicts and all slots are served', async () => {
    assert.equal(await problemOf([noLimit]), 'healthy');
    assert.equal(await problemOf([noLimit, allSlots, noLimit, allSlots]), 'healthy');
    assert.equal(await problemOf([report('maxmemory:1000', 'maxmemory_policy:noeviction')]), 'healthy');
    assert.equal(await problemOf([report('maxmemory:0', 'maxmemory_policy:allkeys-lru')]), 'healthy');
  });

  test('reports a node that uses more than 80 % of its memory limit', async () => {
    const isNearlyFull = async (...reports: readonly Promise<string>[]) => {
      const sources = { reports: () => reports, acceptsCommands: () => true };
      const health = await checkHealth(sources, () => undefined);
      return health.kind === 'healthy' && health.isNearlyFull;
    };
    assert.equal(await isNearlyFull(noLimit), false);
    assert.equal(await isNearlyFull(noLimit, report('used_memory:800', 'maxmemory:1000')), false);
    assert.equal(await isNearlyFull(noLimit, report('used_memory:801', 'maxmemory:1000')), true);
  });

  for (const policy of ['allkeys-lru', 'volatile-ttl', 'volatile-lfu', 'allkeys-random']) {
    test(`reports unusable if one node may evict by ${policy}, and says what to change`, async () => {
      const problem = await problemOf([noLimit, report('maxmemory:1000', `maxmemory_policy:${policy}`)]);
      assert.match(problem, new RegExp(`^unusable: .*${policy}.* set maxmemory-policy to noeviction`));
    });
  }

  test('reports unusable if the user may not run INFO', async () => {
    const denied = Promise.reject(new Error("NOPERM this user has no permissions to run the 'info' command"));
    assert.match(await problemOf([denied]), /^unusable: .*\+info/);
  });

  test('reports unusable if a node is too old for the scripts, and says which version is needed', async () => {
    const versions = (...all: readonly string[]) => all.map((version) => report(`redis_version:${version}`));
    assert.equal(await problemOf(versions('5.0.0', '7.0.15')), 'healthy');
    assert.match(
      await problemOf(versions('7.0.15', '4.0.14')),
      /^unusable: Redis 4\.0\.14 is too old.*upgrade to 5\.0/,
    );
  });

  test('reports unreachable if slots fail, are not assigned, or the cluster is down', async () => {
    const failed = report('cluster_state:ok', 'cluster_slots_assigned:16384', 'cluster_slots_fail:5461');
    assert.match(await problemOf([noLimit, failed]), /^unreachable: .* 5461 of 16384 slots/);
    const unassigned = report('cluster_state:ok', 'cluster_slots_assigned:16383', 'cluster_slots_fail:0');
    assert.match(await problemOf([noLimit, unassigned]), /^unreachable: .* 1 of 16384 slots/);
    const down = report('cluster_state:fail', 'cluster_slots_assigned:16384', 'cluster_slots_fail:0');
    assert.match(await problemOf([noLimit, down]), /^unreachable/);
  });

  test('reports unreachable if a node fails or does not answer, or no node is known', async () => {
    const refused = Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:6379'));
    assert.match(await problemOf([noLimit, refused]), /^unreachable: .*ECONNREFUSED/);
    assert.match(await problemOf([noLimit, new Promise(() => {})]), /^unreachable: .*no answer within/);
    assert.match(await problemOf([]), /^unreachable: .*not connected/);
  });

  test('reports unreachable while the client accepts no commands, with the problem of a node if there is one', async () => {
    assert.match(await problemOf([noLimit, allSlots], false), /^unreachable: .*not connected/);
    const down = report('cluster_state:fail', 'cluster_slots_assigned:10000', 'cluster_slots_fail:0');
    assert.match(await problemOf([noLimit, down], false), /^unreachable: .*6384 of 16384 slots/);
  });

  test('reports the last error of the connection instead of a missing answer', async () => {
    const sources = { reports: () => [], acceptsCommands: () => false };
    const health = await checkHealth(sources, () => 'WRONGPASS invalid username-password pair');
    assert.deepEqual(health, {
      kind: 'unreachable',
      problem: 'Redis unavailable (WRONGPASS invalid username-password pair).',
    });
  });
});
