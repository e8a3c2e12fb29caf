/** The environment switch of the console: pre-flight, confirmation, refusal and audit record. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { adminToken } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

const clients: readonly never[] = [];

/** The card of an environment. */
const cardOf = (page: Page, name: string) => page.getByRole('article', { name });
const dialogOf = (page: Page) => page.getByRole('dialog');

describe('the environment switch of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('works with the keyboard alone: shows the pre-flight, asks for the name, then focuses the new environment', async (t) => {
    const { gateway, callCounts } = await startTwoEnvironments(t, { clients });
    const page = await pages.signIn(t, gateway);
    const button = cardOf(page, 'production').getByRole('button', { name: 'Make active…' });
    for (let steps = 0; steps < 40; steps++) {
      if (await button.evaluate((element) => element === document.activeElement)) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    const dialog = dialogOf(page);
    await dialog.getByText('Pre-flight check passed.').waitFor();
    assert.equal(await dialog.getByLabel('Reason').evaluate((one) => one === document.activeElement), true);

    await page.keyboard.type('go-live');
    await page.keyboard.press('Tab');
    await page.keyboard.type('prod');
    await page.keyboard.press('Enter');
    assert.equal(await dialog.isVisible(), true, 'an incomplete name does not confirm');
    assert.deepEqual(callCounts(), [0, 0]);
    await page.keyboard.type('uction');
    await page.keyboard.press('Enter');

    await page.getByText(/Switched to production at .* \(version 2\)/).waitFor();
    await cardOf(page, 'production').getByText('active', { exact: true }).waitFor();
    assert.equal(await dialog.count(), 0);
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    assert.equal(focused, 'production');
    await page.getByRole('cell', { name: 'switch environment' }).waitFor();
    assert.match(await page.locator('#records').innerText(), /admin[\s\S]*switched[\s\S]*go-live/);
    assert.equal((await call(gateway.url, initiation)).status, 201);
    assert.deepEqual(callCounts(), [0, 1], 'new payments go there');
  });

  test('shows the failed step of the pre-flight, and switches only if the operator forces it', async (t) => {
    const { gateway, production } = await startTwoEnvironments(t, { clients });
    await production.stop();
    const page = await pages.signIn(t, gateway);
    await cardOf(page, 'production').getByRole('button', { name: 'Make active…' }).click();
    const dialog = dialogOf(page);
    await dialog.getByText('Pre-flight check failed.').waitFor();
    assert.match(await dialog.getByRole('listitem').innerText(), /TCP connection.*ECONNREFUSED/s);

    await dialog.getByLabel('Reason').fill('the front is down, the back is not');
    await dialog.getByLabel('Type production to confirm').fill('production');
    await dialog.getByRole('button', { name: 'Switch to production' }).click();
    await dialog.getByText('Not switched: the pre-flight failed.').waitFor();
    assert.equal(await cardOf(page, 'sandbox').getByText('active', { exact: true }).isVisible(), true);

    await dialog.getByLabel(/Switch although the pre-flight check failed/).check();
    await dialog.getByRole('button', { name: 'Switch to production' }).click();
    await cardOf(page, 'production').getByText('active', { exact: true }).waitFor();
    await page.locator('#records').getByText('forced').waitFor();
    await page.getByText('pre-flight: tcp ECONNREFUSED').first().waitFor();
  });

  test('closes on Escape without a switch, and returns the focus', async (t) => {
    const { gateway } = await startTwoEnvironments(t, { clients });
    const page = await pages.signIn(t, gateway);
    const button = cardOf(page, 'production').getByRole('button', { name: 'Make active…' });
    await button.click();
    await dialogOf(page).getByText('Pre-flight check passed.').waitFor();
    await page.keyboard.press('Escape');
    await until(5_000, 'the focus is back', () => button.evaluate((one) => one === document.activeElement));
    assert.equal(await page.locator('#records tr').count(), 0);
    assert.equal(await dialogOf(page).count(), 0);
  });

  test('shows the active environment in the bar, and production in a colour of its own', async (t) => {
    const { gateway } = await startTwoEnvironments(t, { clients });
    const page = await pages.signIn(t, gateway);
    const label = page.getByRole('banner').locator('.active-environment');
    const background = () => label.evaluate((one) => getComputedStyle(one).backgroundColor);
    await label.getByText('sandbox').waitFor();
    const ordinary = await background();
    await switchEnvironment(gateway, 'production');
    await label.getByText('production').waitFor();
    assert.notEqual(await background(), ordinary);
    await switchEnvironment(gateway, 'sandbox');
    await label.getByText('sandbox').waitFor();
    assert.equal(await background(), ordinary);
  });

  test('shows no buttons that change something to an operator with the role read', async (t) => {
    const { gateway, sandbox } = await startTwoEnvironments(t, { clients, admin: { operators: [reader] } });
    for (let payments = 0; payments < 2; payments++) {
      sandbox.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
      await call(gateway.url, initiation);
    }
    const page = await pages.signIn(t, gateway, {}, 'token-of-rita');
    assert.equal(await page.locator('#operator').innerText(), 'rita (read-only)');
    await page.getByText(/^2 payments: /).waitFor();
    const names = () => page.getByRole('button').evaluateAll((all) => all.map((one) => one.textContent));
    const forAll = [
      'Sign out',
      'Why?',
      'Why?',
      'Export CSV',
      'Export JSON',
      'Example',
      'Search',
      'Verify hash chain',
    ];
    assert.deepEqual(await names(), forAll);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Operator token').fill(adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Make active…' }).waitFor();
    for (const name of ['Hold…', 'Resolve…', 'Resolve in bulk…', 'Purge'])
      assert.ok((await names()).includes(name), name);
  });
});

const reader = {
  name: 'rita',
  role: 'read',
  tokenSha256: '19f80cbf2d3870e54f8d2efe42f4004c8a945bc595ce1752e5342fed733cd39c',
};
