/** What the console shows of all instances: the list of instances, the timeline, and a killed instance. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi } from '../../kit/admin-api.ts';
import { newMigratedPostgres } from '../../kit/database.ts';
import { startBank, startGateway } from '../../kit/gateway.ts';
import { startLocalPaymentFleet, startPaymentFleet } from '../../kit/payment-fleet.ts';
import { skipWithoutPostgres } from '../../kit/postgres.ts';
import { skipWithoutRedisServer, startRedis } from '../../kit/redis.ts';
import { axeViolations } from '../accessibility.ts';
import { skipWithoutChromium, usePages } from '../browser.ts';

const pages = usePages();

describe('the instances in the console', { skip: skipWithoutChromium || skipWithoutRedisServer }, () => {
  test('are listed with their figures; a killed one is an alert, in the list and in the timeline', async (t) => {
    const redis = await startRedis(t);
    const { instances } = await startPaymentFleet(t, redis.url, 2);
    const [first = assert.fail(), second = assert.fail()] = instances;
    const page = await pages.signIn(t, first);
    const fleet = page.getByRole('region', { name: 'Instances', exact: true });
    await fleet.getByText('2 instances up').waitFor();
    assert.equal(await fleet.getByText('this page').count(), 1);
    await fleet.locator('tr[data-status="closed"]').nth(1).waitFor();
    assert.match(await fleet.locator('#instance-rows tr').first().innerText(), /ready[\s\S]*\d+ %\s+\d+ MB/);

    await second.stop('SIGKILL');
    await page.getByText(/^Instance .* is down: its last report was at .* UTC\.$/).waitFor();
    await fleet.getByText('1 instance up, 1 down').waitFor();
    await fleet
      .locator('tr[data-status="open"]')
      .getByText(/last seen/)
      .waitFor();
    const timeline = page.getByRole('region', { name: 'Timeline', exact: true });
    await timeline.locator('li[data-kind="lost"]').waitFor({ timeout: 20_000 });
    assert.deepEqual(await axeViolations(page), []);

    await second.start();
    const restarted = / has crashed 1 time within the last hour, last at .*; it was started again\./;
    await page.getByText(restarted).waitFor();
    await page.getByText(/^Instance .* is down/).waitFor({ state: 'detached', timeout: 60_000 }); // 20 s later: it is over
  });

  test('share a timeline: a hold on one appears on the page of the other, and the kinds can be filtered', async (t) => {
    const redis = await startRedis(t);
    const { instances } = await startLocalPaymentFleet(t, redis.url, 2);
    const [first = assert.fail(), second = assert.fail()] = instances;
    const page = await pages.signIn(t, first);
    const timeline = page.getByRole('region', { name: 'Timeline', exact: true });
    const hold = { hold: 'closed', reason: 'the bank has called', for: '10min' };
    await callAdminApi(second, 'PUT', '/api/circuits/sandbox/read', hold);
    await timeline.getByText(/read circuit of sandbox held closed until .*: the bank has called/).waitFor();
    await timeline.getByText('by admin').waitFor();
    await timeline.getByLabel('Kind').selectOption('start');
    await timeline.locator('li[data-kind="hold"]').waitFor({ state: 'detached' });
    assert.ok((await timeline.locator('li[data-kind="start"]').count()) >= 2);
    await timeline.getByLabel('Kind').selectOption('certificate');
    await timeline.getByText('Nothing in this period.').waitFor();
  });
});

test('the console says that instances have different configurations, until all have the same', {
  skip: skipWithoutChromium || skipWithoutPostgres,
}, async (t) => {
  const bank = await startBank(t);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { postgres: await newMigratedPostgres() },
  };
  const [first, second] = [await startGateway(t, sections), await startGateway(t, sections)];
  const page = await pages.signIn(t, first);
  const fleet = page.getByRole('region', { name: 'Instances', exact: true });
  await fleet.getByText('2 instances up').waitFor();
  const difference = page.getByText(/^The instances run with different configurations: .* \/ /);
  assert.equal(await difference.count(), 0);
  const next = { ...sections, deadlines: { write: '20s' } };
  await second.reload(next);
  await difference.waitFor({ timeout: 30_000 });
  assert.deepEqual(await axeViolations(page), []);
  await first.reload(next);
  await page.getByText(/different configurations: .* Over since /).waitFor();
  await difference.waitFor({ state: 'detached', timeout: 60_000 });
});
