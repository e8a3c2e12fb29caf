import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkHealth } from '../../../src/state/redis-monitor.ts';

const says = (...lines: readonly string[]) => Promise.resolve(`# Memory\r\n${lines.join('\r\n')}\r\n`);
const roomy = says('used_memory:1024', 'maxmemory:0', 'maxmemory_policy:noeviction');
const whole = says('cluster_state:ok', 'cluster_slots_assigned:16384', 'cluster_slots_fail:0');
const troubleOf = (...all: readonly Promise<string>[]) => troubleIn(all, true);
const troubleIn = async (all: readonly Promise<string>[], isReady: boolean) => {
  const health = await checkHealth({ reports: () => all, takesCommands: () => isReady }, () => undefined);
  return health.kind === 'well' ? undefined : `${health.kind}: ${health.problem}`;
};

describe('the health of Redis', () => {
  test('is well if no node evicts and all slots are served', async () => {
    assert.equal(await troubleOf(roomy), undefined);
    assert.equal(await troubleOf(roomy, whole, roomy, whole), undefined);
    assert.equal(await troubleOf(says('maxmemory:1000', 'maxmemory_policy:noeviction')), undefined);
    assert.equal(await troubleOf(says('maxmemory:0', 'maxmemory_policy:allkeys-lru')), undefined);
  });

  for (const policy of ['allkeys-lru', 'volatile-ttl', 'volatile-lfu', 'allkeys-random']) {
    test(`is unfit if one node may evict by ${policy}, and says what to change`, async () => {
      const trouble = await troubleOf(roomy, says('maxmemory:1000', `maxmemory_policy:${policy}`));
      assert.match(trouble ?? '', new RegExp(`^unfit: .*${policy}.* set maxmemory-policy to noeviction`));
    });
  }

  test('is unfit if nobody may know whether it evicts', async () => {
    const denied = Promise.reject(new Error("NOPERM this user has no permissions to run the 'info' command"));
    assert.match((await troubleOf(denied)) ?? '', /^unfit: .*\+info/);
  });

  test('is out of reach if slots fail, are given to nobody, or the cluster has given up', async () => {
    const lost = says('cluster_state:ok', 'cluster_slots_assigned:16384', 'cluster_slots_fail:5461');
    assert.match((await troubleOf(roomy, lost)) ?? '', /^out of reach: .* 5461 of its 16384 slots/);
    const bare = says('cluster_state:ok', 'cluster_slots_assigned:16383', 'cluster_slots_fail:0');
    assert.match((await troubleOf(roomy, bare)) ?? '', /^out of reach: .* 1 of its 16384 slots/);
    const down = says('cluster_state:fail', 'cluster_slots_assigned:16384', 'cluster_slots_fail:0');
    assert.match((await troubleOf(roomy, down)) ?? '', /^out of reach/);
  });

  test('is out of reach if a node fails, is silent, or there is none', async () => {
    const refused = Promise.reject(new Error('connect ECONNREFUSED 127.0.0.1:6379'));
    assert.match((await troubleOf(roomy, refused)) ?? '', /^out of reach: .*ECONNREFUSED/);
    assert.match((await troubleOf(roomy, new Promise(() => {}))) ?? '', /^out of reach: .*no answer within/);
    assert.match((await troubleOf()) ?? '', /^out of reach: .*not connected/);
  });

  test('is out of reach as long as the client takes no commands, and what the nodes say against it says more', async () => {
    assert.match((await troubleIn([roomy, whole], false)) ?? '', /^out of reach: .*not connected/);
    const down = says('cluster_state:fail', 'cluster_slots_assigned:10000', 'cluster_slots_fail:0');
    assert.match((await troubleIn([roomy, down], false)) ?? '', /^out of reach: .*6384 of its 16384 slots/);
  });

  test('tells what the connection complained of rather than that it is not there', async () => {
    const looks = { reports: () => [], takesCommands: () => false };
    const health = await checkHealth(looks, () => 'WRONGPASS invalid username-password pair');
    assert.deepEqual(health, {
      kind: 'out of reach',
      problem: 'Redis cannot be reached (WRONGPASS invalid username-password pair).',
    });
  });
});
