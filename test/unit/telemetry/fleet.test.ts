import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { PubSub } from '../../../src/state/ports.ts';
import { createSubscriptions } from '../../../src/state/subscriptions.ts';
import { createFleet, type Fleet } from '../../../src/telemetry/fleet.ts';
import { type InstanceReport, serializeMessage } from '../../../src/telemetry/fleet-messages.ts';
import type { SecondCounts } from '../../../src/telemetry/live-stats.ts';
import { instanceReport, secondWith } from '../../kit/fleet-reports.ts';

interface FleetMember {
  readonly name: string;
  readonly fleet: Fleet;
  /** What its fleet has noticed, such as `lost two`. */
  readonly noticed: readonly string[];
  /** Whether it publishes every second; a killed one never does again. */
  isRunning: boolean;
  /** Whether it reaches the state. */
  isConnected: boolean;
  /** The requests of every second, and the reports' other contents. */
  requests: number;
  more: Partial<InstanceReport>;
}

/** Instances on one state, with a clock of their own. Time passes in quarters of a second. */
function startNetwork() {
  const startMs = Date.UTC(2026, 0, 31, 12);
  const clock = { nowMs: startMs };
  const { journals } = createMemoryState(() => clock.nowMs);
  const subscriptions = createSubscriptions();
  const members: FleetMember[] = [];

  const unavailable = () =>
    Promise.reject(new GatewayError('STATE_UNAVAILABLE', 'The state is unavailable.'));

  function start(name: string): FleetMember {
    const noticed: string[] = [];
    const isConnected = () => member.isConnected;
    const pubsub: PubSub = {
      async publish(channel, message) {
        if (!isConnected()) return unavailable();
        subscriptions.deliver(channel, message);
      },
      subscribe: (channel, listener) =>
        subscriptions.add(channel, (message) => {
          if (isConnected()) listener(message);
        }),
    };
    const fleet = createFleet({
      state: {
        pubsub,
        journals: {
          append: (...args) => (isConnected() ? journals.append(...args) : unavailable()),
          read: (key) => (isConnected() ? journals.read(key) : unavailable()),
        },
      },
      ownId: name,
      events: {
        onLost: (last) => noticed.push(`lost ${last.name}`),
        onReturned: (last) => noticed.push(`returned ${last.name}`),
      },
      now: () => clock.nowMs - startMs,
      wall: () => clock.nowMs,
    });
    const member: FleetMember = {
      ...{ name, fleet, noticed, isRunning: true, isConnected: true, requests: 0, more: {} },
    };
    members.push(member);
    return member;
  }

  function secondsOf({ requests }: FleetMember): readonly SecondCounts[] {
    const current = Math.floor(clock.nowMs / 1_000);
    return Array.from({ length: 10 }, (_, index) => secondWith(current - 10 + index, requests));
  }

  async function pass(ms: number): Promise<void> {
    for (const endMs = clock.nowMs + ms; clock.nowMs < endMs; ) {
      clock.nowMs += 250;
      for (const member of members.filter(({ isRunning }) => isRunning)) {
        if (clock.nowMs % 1_000 === 0)
          member.fleet.publish(instanceReport(member.name, clock.nowMs, member.more), secondsOf(member));
        member.fleet.check();
      }
      await setImmediate();
    }
  }

  return {
    clock,
    pass,
    start,
    publish: (message: string) => subscriptions.deliver('fleet', message),
    statuses: ({ fleet }: FleetMember) =>
      Object.fromEntries(fleet.instances().map(({ name, status }) => [name, status])),
  };
}

describe('the fleet', () => {
  test('shows the same instances on each of them, in the order of their names', async () => {
    const { pass, start } = startNetwork();
    const [two, one] = [start('two'), start('one')];
    two.more = { ready: false, reasons: ['draining'] };
    await pass(2_000);
    const views = one.fleet.instances();
    assert.deepEqual(
      views.map(({ name, status, ready, reasons }) => [name, status, ready, reasons]),
      [
        ['one', 'up', true, []],
        ['two', 'up', false, ['draining']],
      ],
    );
    assert.deepEqual(two.fleet.instances(), views);
    assert.deepEqual(one.fleet.scope(), { isComplete: true, why: null });
  });

  test('shows a new instance although more than a thousand have ended within the hour', async () => {
    const { pass, start, clock, publish, statuses } = startNetwork();
    const one = start('one');
    await pass(2_000);
    for (let index = 0; index < 1_200; index++) {
      const report = instanceReport(`crashed-${index}`, clock.nowMs + index);
      publish(serializeMessage({ kind: 'stopped', report }));
    }
    start('two');
    await pass(2_000);
    const { two, one: own, 'crashed-0': first, 'crashed-1199': last } = statuses(one);
    assert.deepEqual([own, two, first, last], ['up', 'up', undefined, 'stopped']);
  });

  test('shows an instance as down within three seconds after its end, and notices it once', async () => {
    const { pass, start, statuses } = startNetwork();
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(3_500);
    two.isRunning = false;
    await pass(1_750);
    assert.equal(statuses(one).two, 'up');
    await pass(1_250);
    const views = one.fleet.instances();
    assert.deepEqual(statuses(one), { one: 'up', two: 'down', three: 'up' });
    assert.deepEqual(three.fleet.instances(), views);
    assert.deepEqual(
      views.filter(({ name }) => name === 'two').map(({ ready, reasons }) => [ready, reasons]),
      [[false, ['no report since 2026-01-31T12:00:03.000Z']]],
    );
    await pass(60_000);
    assert.deepEqual([one.noticed, three.noticed], [['lost two'], ['lost two']]);
  });

  test('notices that a lost instance reports again', async () => {
    const { pass, start, statuses } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    await pass(3_000);
    two.isRunning = false;
    await pass(10_000);
    two.isRunning = true;
    await pass(2_000);
    assert.deepEqual(one.noticed, ['lost two', 'returned two']);
    assert.deepEqual([statuses(one), statuses(two)], [statuses(two), { one: 'up', two: 'up' }]);
    assert.deepEqual(two.noticed, [], 'the others did not stop while it was suspended');
  });

  test('shows a stopped instance as stopped, and never as down', async () => {
    const { clock, pass, publish, start, statuses } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    await pass(3_000);
    two.isRunning = false;
    const report = instanceReport('two', clock.nowMs);
    await two.fleet.stop();
    publish(
      JSON.stringify({ kind: 'running', report, from: 1, through: 1, seconds: [], wantsSeconds: false }),
    ); // messages can overtake each other
    await pass(60_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'stopped' });
    assert.deepEqual(one.noticed, []);
  });

  test('lists an instance for an hour after its end', async () => {
    const { pass, start, statuses } = startNetwork();
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(2_000);
    two.isRunning = three.isRunning = false;
    await three.fleet.stop();
    await pass(3_590_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'down', three: 'stopped' });
    await pass(20_000);
    assert.deepEqual(statuses(one), { one: 'up' });
  });

  test('does not judge the others while the state is unavailable, and says that it shows only itself', async () => {
    const { pass, start, statuses } = startNetwork();
    const all = [start('one'), start('two'), start('three')];
    const [one, two, three] = [all[0] ?? assert.fail(), all[1] ?? assert.fail(), all[2] ?? assert.fail()];
    await pass(3_250); // the outage begins between the reports
    for (const member of all) member.isConnected = false;
    await pass(4_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'unknown', three: 'unknown' });
    assert.equal(one.fleet.scope().isComplete, false);
    assert.match(one.fleet.scope().why ?? '', /Redis is unavailable/);
    await pass(120_000);
    three.isRunning = false;
    for (const member of all) member.isConnected = true;
    await pass(1_500);
    assert.deepEqual(statuses(one), { one: 'up', two: 'up', three: 'unknown' });
    await pass(3_000);
    assert.deepEqual(statuses(one), { one: 'up', two: 'up', three: 'down' });
    assert.deepEqual([one.noticed, two.noticed], [['lost three'], ['lost three']]);
  });

  test('learns at its start which instances have ended before, and notices those that ended with all others', async () => {
    const { pass, start, statuses } = startNetwork();
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await pass(2_000);
    one.isRunning = false;
    await pass(5_000);
    two.isRunning = false;
    await two.fleet.stop();
    three.isRunning = false; // killed while no other instance runs
    await pass(10_000);
    const four = start('four');
    await pass(1_250);
    assert.deepEqual(statuses(four), { one: 'down', two: 'stopped', three: 'unknown', four: 'up' });
    await pass(3_000);
    assert.deepEqual(statuses(four), { one: 'down', two: 'stopped', three: 'down', four: 'up' });
    assert.deepEqual(four.noticed, ['lost three']);
  });

  test('ignores messages of a newer release and of others', async () => {
    const { clock, pass, start, statuses, publish } = startNetwork();
    const one = start('one');
    await pass(2_000);
    const report = instanceReport('two', clock.nowMs);
    const running = { kind: 'running', report, from: 1, through: 1, seconds: [], wantsSeconds: false };
    for (const message of [
      ...['', '{', 'null', '[]', JSON.stringify({ kind: 'moved', report })],
      JSON.stringify({ ...running, report: { ...report, name: 7 } }),
      JSON.stringify({ ...running, seconds: [{ at: 1, requests: -1 }] }),
    ])
      publish(message);
    assert.deepEqual(statuses(one), { one: 'up' });
    publish(JSON.stringify({ ...running, more: 1, report: { ...report, mood: 'good' } }));
    assert.deepEqual(statuses(one), { one: 'up', two: 'up' });
    assert.ok(!('mood' in (one.fleet.instances()[1] ?? {})));
  });
});

describe('the seconds of the fleet', () => {
  const shown = ({ fleet }: FleetMember) => fleet.seconds().map(({ at, requests }) => [at % 100, requests]);

  test('are the sums of all instances, the same on each of them', async () => {
    const { pass, start } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(3_000);
    assert.deepEqual(one.fleet.seconds(), two.fleet.seconds());
    assert.deepEqual(shown(one).at(-1), [2, 7]);
    assert.ok(shown(one).length >= 10);
  });

  test('reach an instance that has just started, also those from before', async () => {
    const { pass, start } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(60_000);
    const three = start('three');
    await pass(3_000);
    assert.deepEqual(three.fleet.seconds(), one.fleet.seconds());
    assert.deepEqual(three.fleet.seconds(), two.fleet.seconds());
  });

  test('wait for an instance that is late, but not for one that is down', async () => {
    const { pass, start } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(10_000);
    two.isRunning = false;
    await pass(1_000);
    assert.deepEqual(shown(one).at(-1), [9, 7], 'the tenth second is incomplete');
    await pass(5_000);
    assert.deepEqual(shown(one).at(-1), [15, 3]);
  });

  test('are those of this instance while the state is unavailable, and complete afterwards', async () => {
    const { pass, start } = startNetwork();
    const [one, two] = [start('one'), start('two')];
    [one.requests, two.requests] = [3, 4];
    await pass(5_000);
    one.isConnected = false;
    await pass(6_000);
    assert.deepEqual(shown(one).at(-1), [10, 3]);
    one.isConnected = true;
    await pass(4_000);
    assert.deepEqual(one.fleet.seconds(), two.fleet.seconds());
    assert.deepEqual(
      shown(one).find(([at]) => at === 8),
      [8, 7],
    );
  });
});
