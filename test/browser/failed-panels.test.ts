/** Panels that cannot be read: they show the age of their data, recover by themselves, and agree with the overall status. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { call } from '../kit/call.ts';
import { newGatewayDatabase } from '../kit/database.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

const unavailable = { status: 503, json: { error: 'The shared state is unavailable.' } };

describe('the panels of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  for (const { path, section, name } of [
    { path: '/api/in-doubt', section: 'In doubt', name: 'The list of payments in doubt' },
    { path: '/api/audit', section: 'Audit log', name: 'The audit log' },
  ]) {
    test(`report that ${path} cannot be read in the panel and in the overall status, and recover by themselves`, async (t) => {
      const { gateway } = await startGatewayWithBank(t);
      const page = await pages.signIn(t, gateway);
      await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
      const panel = page.getByRole('region', { name: section, exact: true });
      await panel.getByText(/^updated \d+ s ago$/).waitFor();
      await recordContradictions(page);

      await page.route(`**${path}`, (route) => route.fulfill(unavailable));
      // The page reads both lists again after each action of the operator.
      await page.evaluate(() => document.dispatchEvent(new Event('operator-action')));
      await page.getByRole('heading', { name: '1 active alert' }).waitFor();
      await page.locator('#alert-list').getByText(`${name} could not be read.`).waitFor();
      await panel.getByText(`${name} could not be read: The shared state is unavailable.`).waitFor();

      await page.unroute(`**${path}`);
      await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
      await panel.getByText('could not be read').waitFor({ state: 'hidden' });
      await panel.getByText(/^updated \d+ s ago$/).waitFor();
      assert.deepEqual(await contradictions(page), []);
    });
  }

  test('keep the payments in doubt of the last read while it fails, with their age, and read again on request', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    await call(gateway.url, initiation);
    const page = await pages.signIn(t, gateway);
    const panel = page.getByRole('region', { name: 'In doubt', exact: true });
    await panel.getByRole('button', { name: /^Resolve / }).waitFor();
    await page.route('**/api/in-doubt', (route) => route.fulfill(unavailable));
    await page.evaluate(() => document.dispatchEvent(new Event('operator-action')));
    await panel.getByText(/could not be read: .* The data below are from /).waitFor();
    // Only now: a read that began before the route could still show the second payment.
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    await call(gateway.url, initiation);
    await page
      .getByText(/^The list of payments in doubt could not be read\. The page shows the data of /)
      .waitFor();
    await page.getByText(/^2 payments are in doubt in sandbox: /).waitFor();
    assert.equal(await panel.getByRole('button', { name: /^Resolve / }).count(), 1);

    // While reads fail: after a good one, which the page also makes by itself, there is no such button.
    const asked = page.waitForRequest('**/api/in-doubt');
    await panel.getByRole('button', { name: 'Retry now' }).click();
    await asked;
    await page.unroute('**/api/in-doubt');
    await page.evaluate(() => document.dispatchEvent(new Event('operator-action')));
    await page.getByText(/^2 payments are in doubt in sandbox: /).waitFor();
    assert.equal(
      await panel.getByRole('button', { name: /^Resolve / }).count(),
      3,
      'two rows and the bulk resolution',
    );
  });

  test('do not report that all is well before everything has been read once', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor(); // the instance has just started
    const delay = Promise.withResolvers<void>();
    await page.route('**/api/in-doubt', (route) => delay.promise.then(() => route.continue()));
    await page.reload();
    await page.getByText(/^Live, /).waitFor();
    assert.equal(await page.locator('#alerts-title').innerText(), 'Loading…');
    delay.resolve();
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
  });

  test('recover after an outage of the database without a reload of the page', async (t) => {
    const database = createFaultyDatabase(await newGatewayDatabase(t));
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const gateway = await startGateway(t, { environments }, { database, heartbeatDatabase: database });
    const page = await pages.signIn(t, gateway);
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
    await recordContradictions(page);
    database.fail('before');
    await page.getByText('The list of payments in doubt could not be read: ').waitFor({ timeout: 60_000 });
    await page.getByRole('heading', { name: /active alert/ }).waitFor();
    database.recover();
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor({ timeout: 60_000 });
    assert.equal(await page.locator('.panel-problem:visible').count(), 0);
    assert.deepEqual(await contradictions(page), []);
  });
});

/** Records every moment at which the overall status reports that all is well while a panel reports a problem. */
const recordContradictions = (page: Page) =>
  page.evaluate(() => {
    const found: string[] = [];
    const check = () => {
      const isWell = document.getElementById('alerts-title')?.textContent?.includes('no active alerts');
      for (const problem of document.querySelectorAll('.panel-problem'))
        if (isWell && problem.checkVisibility()) found.push(problem.textContent ?? '');
    };
    const everything = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(check).observe(document.body, everything);
    Object.assign(window, { contradictions: found });
  });

const contradictions = (page: Page) =>
  page.evaluate(() => ('contradictions' in window ? window.contradictions : undefined));
