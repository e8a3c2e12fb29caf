/** What an instance shows of the fleet alone: with a state file, and while the database is unavailable. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { startSingleInstance } from '../kit/fleet.ts';
import { startSingleRedis } from '../kit/fleet-redis.ts';
import { readSnapshot, readStatuses, readTimeline, type ShownEntry } from '../kit/fleet-view.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { until } from '../kit/within.ts';
import { kindsOf, nameOf, sameOn, startInstances } from './fleet-view-contract.ts';

test('a single instance with a state file shows itself, and after a crash how the former process ended', async (t) => {
  const instance = await startSingleInstance(t, { file: `${temporaryFolder(t)}/state` });
  const former = nameOf(instance);
  await until(20_000, 'it shows itself', async () => (await readStatuses(instance))[former] === 'up');
  await until(20_000, 'its start is stored', async () => (await readTimeline(instance)).length > 0);
  await instance.stop('SIGKILL');
  await instance.start();
  const present = nameOf(instance);
  assert.notEqual(present, former);
  await until(20_000, 'it shows the former process as down', async () => {
    const statuses = await readStatuses(instance);
    return statuses[former] === 'down' && statuses[present] === 'up';
  });
  await until(20_000, 'the loss is in the timeline', async () =>
    (await readTimeline(instance)).some(({ kind, instance: name }) => kind === 'lost' && name === former),
  );

  assert.equal(await instance.stop('SIGTERM'), 0);
  await instance.start();
  await until(20_000, 'it shows the second process as stopped', async () => {
    const statuses = await readStatuses(instance);
    return statuses[former] === 'down' && statuses[present] === 'stopped';
  });
  assert.equal(kindsOf(await readTimeline(instance), 'lost').length, 1);
});

test('during an outage of Redis each instance shows all of them', {
  skip: skipWithoutRedisServer,
}, async (t) => {
  const redis = await startSingleRedis(t);
  const { instances } = await startInstances(t, redis, 2);
  const areUp = (all: Readonly<Record<string, string>>) =>
    Object.values(all).filter((status) => status === 'up').length === 2;
  await sameOn(instances, 'both instances', readStatuses, areUp);
  await redis.kill();
  const [one = assert.fail()] = instances;
  await until(20_000, 'it notices the outage', async () => {
    const { readiness } = await readSnapshot(one);
    return readiness.reasons.some((reason) => /Redis/.test(reason));
  });
  await callAdminApi(one, 'POST', '/api/config/reload', { reason: 'a test' });
  await sameOn(instances, 'the reload', readTimeline, (entries) =>
    entries.some(({ kind }) => kind === 'reload'),
  );
  const { fleet } = await readSnapshot(one);
  assert.equal(fleet.isComplete, true);
  await sameOn(instances, 'both instances', readStatuses, areUp);
});

test('during an outage of the database each instance shows its own figures, says so, and stores its timeline afterwards', {
  skip: skipWithoutPostgres,
}, async (t) => {
  const postgres = await startPostgres(t);
  const { instances } = await startInstances(t, undefined, 2, postgres.url);
  const [one = assert.fail(), other = assert.fail()] = instances;
  await sameOn(instances, 'both instances', readStatuses, (all) => Object.keys(all).length === 2);
  await sameOn(instances, 'both starts', readTimeline, (entries) => kindsOf(entries, 'start').length === 2);

  await postgres.kill();
  await until(20_000, 'it shows only itself', async () => {
    const { fleet, instances: listed, seconds } = await readSnapshot(one);
    const statuses = new Map(listed.map(({ name, status }) => [name, status]));
    return (
      !fleet.isComplete &&
      /the database is unavailable/.test(fleet.why ?? '') &&
      statuses.get(nameOf(one)) === 'up' &&
      statuses.get(nameOf(other)) === 'unknown' &&
      seconds.length > 0
    );
  });
  one.command.kill('SIGHUP');
  const isReload = ({ kind }: ShownEntry) => kind === 'reload';
  await until(20_000, 'it shows its own timeline', async () => (await readTimeline(one)).some(isReload));

  await postgres.restart();
  await sameOn(instances, 'both instances', readStatuses, (all) =>
    Object.values(all).every((status) => status === 'up'),
  );
  const timeline = await sameOn(instances, 'the reload', readTimeline, (entries) => entries.some(isReload));
  assert.deepEqual(kindsOf(timeline, 'lost'), [], 'no instance was lost during the outage');
});
