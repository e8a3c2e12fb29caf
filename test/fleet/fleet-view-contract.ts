/** Every instance shows the same instances, figures and timeline of all of them, and which ones have ended and how. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { callAdminApi, switchEnvironment } from '../kit/admin-api.ts';
import { callOnce } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import type { FleetRedis } from '../kit/fleet-redis.ts';
import {
  readInstances,
  readSnapshot,
  readStatuses,
  readTimeline,
  type ShownEntry,
} from '../kit/fleet-view.ts';
import { type Sections, startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';

import { initiation } from '../kit/request.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

/** Starts that many instances in front of two banks, and waits until each of them executes payments. */
export async function startInstances(
  life: TestScope,
  redis: FleetRedis | undefined,
  count: number,
  postgres?: string,
) {
  const [sandbox, production] = [await startBank(life), await startBank(life, { name: 'production' })];
  const sections: Sections = {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl },
      production: { baseUrl: production.baseUrl },
    },
    circuit: { minimumCalls: 3, openFor: '1min' },
    shaping: { expectedInstances: count },
    state: {
      postgres: postgres ?? (await newMigratedPostgres()),
      ...(redis ? { redis: redis.settings } : {}),
      prefix: `fleet-${randomUUID()}:`,
    },
  };
  const start = () => startGatewayProcess(life, sections);
  const instances = await Promise.all(Array.from({ length: count }, start));
  let sentPayments = 0;
  const pay = ({ url }: GatewayProcess) => {
    sentPayments += 1;
    return callOnce(url, { ...initiation, requestId: randomUUID() });
  };
  for (const instance of instances)
    await until(20_000, 'the instance executes a payment', async () => (await pay(instance)).status === 201);
  return { sandbox, sections, instances, start, pay, sentPayments: () => sentPayments };
}

export const nameOf = (instance: GatewayProcess) => String(instance.logged()[0]?.instance);

/** Waits until all instances show the same, and this holds. @returns what they show */
export async function sameOn<Shown>(
  instances: readonly GatewayProcess[],
  what: string,
  read: (instance: GatewayProcess) => Promise<Shown>,
  condition: (shown: Shown) => boolean,
): Promise<Shown> {
  let shown: readonly Shown[] = [];
  const describeShown = () =>
    `all instances show ${what}: ${shown.map((each) => JSON.stringify(each)).join('\n')}`;
  await until(20_000, describeShown, async () => {
    shown = await Promise.all(instances.map((instance) => read(instance)));
    const [first] = shown;
    const areEqual = shown.every((each) => JSON.stringify(each) === JSON.stringify(first));
    return areEqual && first !== undefined && condition(first);
  });
  return shown[0] ?? assert.fail();
}

export const kindsOf = (entries: readonly ShownEntry[], kind: string) =>
  entries.filter((entry) => entry.kind === kind);

export function testFleetView(
  startRedis: (life: TestScope) => Promise<FleetRedis | undefined>,
  count: number,
): void {
  test('shows the same instances, figures and timeline, whichever instance is asked', async (t) => {
    const { sandbox, sections, instances, pay, sentPayments } = await startInstances(
      t,
      await startRedis(t),
      count,
    );
    const names = instances.map(nameOf);
    assert.equal(new Set(names).size, count, 'processes of one host have different names');

    // Figures: each payment is counted once, on whichever instance.
    for (let sent = 0; sent < 10; sent++) for (const instance of instances) await pay(instance);
    await sameOn(instances, 'the payments', secondsOf, (seconds) => sumOf(seconds) === sentPayments());
    const shown = await sameOn(
      instances,
      'all instances',
      readInstances,
      (all) => all.length === count && all.every(({ status, ready }) => status === 'up' && ready),
    );
    assert.deepEqual(
      shown.map(({ name }) => name),
      names.toSorted(),
    );
    assert.equal(new Set(shown.map(({ configurationHash }) => configurationHash)).size, 1);
    for (const { clockDifferenceMs } of shown) assert.ok(Math.abs(clockDifferenceMs) < 2_000);
    for (const { figures } of shown)
      assert.ok(
        Number(figures.memoryBytes) > 1_000_000 && Number(figures.cpuPercent) >= 0,
        JSON.stringify(figures),
      );

    // What operators do, each on another instance.
    const [one = assert.fail(), other = assert.fail()] = instances;
    const hold = { hold: 'open', reason: 'maintenance of the bank' };
    assert.equal((await callAdminApi(one, 'PUT', '/api/circuits/production/read', hold)).status, 200);
    await switchEnvironment(other, 'production');
    await switchEnvironment(one, 'sandbox');
    other.rewrite({ ...sections, deadlines: { write: '20s' } });
    assert.equal(
      (await callAdminApi(other, 'POST', '/api/config/reload', { reason: 'slow bank' })).status,
      200,
    );

    await sameOn(
      instances,
      'that the configurations differ',
      readInstances,
      (all) => new Set(all.map(({ configurationHash }) => configurationHash)).size === 2,
    );

    // A circuit that opens on one instance.
    await sandbox.stop();
    await until(20_000, 'the circuit opens', async () => {
      const reply = await pay(one);
      return reply.header('Penstock-Error') === 'CIRCUIT_OPEN';
    });
    await sameOn(instances, 'the open circuit', readInstances, (all) => {
      const circuits = all.find(({ name }) => name === nameOf(one))?.circuits ?? [];
      return circuits.some((circuit) => circuit.environment === 'sandbox' && circuit.state === 'open');
    });

    const timeline = await sameOn(
      instances,
      'the whole timeline',
      readTimeline,
      (entries) => kindsOf(entries, 'start').length === count && kindsOf(entries, 'circuit').length === 1,
    );
    assert.deepEqual(
      kindsOf(timeline, 'start')
        .map(({ instance }) => instance)
        .toSorted(),
      names.toSorted(),
    );
    const summary = (['hold', 'switch', 'reload', 'circuit'] as const).flatMap((kind) =>
      kindsOf(timeline, kind).map(({ instance, who, environment, text }) => [
        kind,
        instance,
        who,
        environment,
        text,
      ]),
    );
    const [oneName, otherName] = [nameOf(one), nameOf(other)];
    const [held = [], ...others] = summary;
    const opened = others.pop() ?? [];
    assert.deepEqual(held.slice(0, 4), ['hold', oneName, 'admin', 'production']);
    assert.match(String(held[4]), /^read circuit of production held open until .*: maintenance of the bank$/);
    assert.deepEqual(others, [
      ['switch', oneName, 'admin', 'sandbox', 'new payments go to sandbox instead of production: a test'],
      [
        'switch',
        otherName,
        'admin',
        'production',
        'new payments go to production instead of sandbox: a test',
      ],
      ['reload', otherName, 'admin', null, 'configuration reloaded: deadlines.write: 35s -> 20s'],
    ]);
    assert.deepEqual(opened.slice(0, 4), ['circuit', oneName, null, 'sandbox']);
    assert.match(String(opened[4]), /^write circuit of sandbox, tenant \w+: opened; \d+ of \d+ calls /);

    const [newest] = timeline;
    const later = new Date(Date.parse(newest?.at ?? '') + 1).toISOString();
    assert.deepEqual(await readTimeline(one, `?from=${later}`), []);
  });

  test('shows a killed instance as down and a stopped one as stopped, also to one that starts later', async (t) => {
    const { instances, start } = await startInstances(t, await startRedis(t), count + 1);
    const [one = assert.fail(), stopped = assert.fail(), killed = assert.fail(), ...more] = instances;
    const remaining = [one, ...more];
    const names = { stopped: nameOf(stopped), killed: nameOf(killed) };
    await sameOn(instances, 'all instances', readStatuses, (all) => Object.keys(all).length === count + 1);

    assert.equal(await killed.stop('SIGKILL'), 'SIGKILL');
    for (const instance of remaining)
      await until(3_000, 'the instance shows the killed one as down', async () => {
        const { instances: listed } = await readSnapshot(instance);
        return listed.some(({ name, status }) => name === names.killed && status === 'down');
      });
    assert.equal(await stopped.stop('SIGTERM'), 0);
    const isShown = (all: Readonly<Record<string, string>>) =>
      all[names.killed] === 'down' && all[names.stopped] === 'stopped';
    await sameOn(remaining, 'the stopped instance', readStatuses, isShown);

    const late = await start();
    const all = [...remaining, late];
    const statuses = await sameOn(
      all,
      'the same instances as the new one',
      readStatuses,
      (shown) =>
        isShown(shown) && Object.values(shown).filter((status) => status === 'up').length === all.length,
    );
    assert.equal(Object.keys(statuses).length, count + 2);
    const timeline = await sameOn(
      all,
      'the new instance in the timeline',
      readTimeline,
      (entries) => kindsOf(entries, 'start').length === count + 2 && kindsOf(entries, 'lost').length > 0,
    );
    assert.deepEqual(
      kindsOf(timeline, 'lost').map(({ instance }) => instance),
      [names.killed],
    );
    assert.deepEqual(
      kindsOf(timeline, 'stop').map(({ instance, text }) => [instance, text]),
      [[names.stopped, 'stopped: SIGTERM']],
    );
  });
}

const secondsOf = async (instance: GatewayProcess) => (await readSnapshot(instance)).seconds;
const sumOf = (seconds: readonly { readonly requests: number }[]) =>
  seconds.reduce((sum, { requests }) => sum + requests, 0);
