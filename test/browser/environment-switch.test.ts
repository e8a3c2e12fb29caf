/** The switch of the environment in the console: tried out, explained, confirmed, and on record. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, startBrowser } from './browser.ts';

const clients: readonly never[] = [];

/** The card of an environment. */
const cardOf = (page: Page, name: string) => page.getByRole('article', { name });
const dialogOf = (page: Page) => page.getByRole('dialog');

describe('the switch in the console', { skip: skipWithoutChromium }, () => {
  const pages = startBrowser();

  test('is done by keyboard alone: the pre-flight is shown first, production is typed, the focus comes to its card', async (t) => {
    const sides = await startTwoEnvironments(t, { clients });
    const page = await pages.signIn(t, sides.gateway);
    const button = cardOf(page, 'production').getByRole('button', { name: 'Send new payments here…' });
    for (let steps = 0; steps < 40; steps++) {
      if (await button.evaluate((element) => element === document.activeElement)) break;
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    const dialog = dialogOf(page);
    await dialog.getByText('The bank is ready.').waitFor();
    assert.equal(await dialog.getByLabel('Reason').evaluate((one) => one === document.activeElement), true);

    await page.keyboard.type('go-live');
    await page.keyboard.press('Tab');
    await page.keyboard.type('prod');
    await page.keyboard.press('Enter');
    assert.equal(await dialog.isVisible(), true, 'half a name is not enough');
    assert.deepEqual(sides.callCounts(), [0, 0]);
    await page.keyboard.type('uction');
    await page.keyboard.press('Enter');

    await page.getByText(/New payments go to production since .* \(version 2\)/).waitFor();
    await cardOf(page, 'production').getByText('new payments go here').waitFor();
    assert.equal(await dialog.count(), 0);
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    assert.equal(focused, 'production');
    await page.getByRole('cell', { name: 'switch environment' }).waitFor();
    assert.match(await page.locator('#records').innerText(), /admin[\s\S]*switched[\s\S]*go-live/);
    await fetch(`${sides.gateway.url}${initiation.path}`, {
      method: 'POST',
      headers: [
        ...initiation.headers.map(([name, value]): [string, string] => [name, value]),
        ['X-Request-ID', crypto.randomUUID()],
      ],
      body: initiation.body,
    });
    assert.deepEqual(sides.callCounts(), [0, 1], 'and new payments go there');
  });

  test('shows where the pre-flight failed, refuses, and goes through only if it is forced', async (t) => {
    const sides = await startTwoEnvironments(t, { clients });
    await sides.production.stop();
    const page = await pages.signIn(t, sides.gateway);
    await cardOf(page, 'production')
      .getByRole('button', { name: /Send new payments/ })
      .click();
    const dialog = dialogOf(page);
    await dialog.getByText('The pre-flight failed.').waitFor();
    assert.match(await dialog.getByRole('listitem').innerText(), /Connection.*ECONNREFUSED/s);

    await dialog.getByLabel('Reason').fill('the front is down, the back is not');
    await dialog.getByLabel('Type production to confirm').fill('production');
    await dialog.getByRole('button', { name: 'Switch to production' }).click();
    await dialog.getByText('Not switched: the pre-flight failed.').waitFor();
    assert.equal(await cardOf(page, 'sandbox').getByText('new payments go here').isVisible(), true);

    await dialog.getByLabel(/Switch although/).check();
    await dialog.getByRole('button', { name: 'Switch to production' }).click();
    await cardOf(page, 'production').getByText('new payments go here').waitFor();
    await page.locator('#records').getByText('forced').waitFor();
    await page.getByText('pre-flight: tcp ECONNREFUSED').first().waitFor();
  });

  test('asks for no name where no money moves, and is left by Escape with nothing done and the focus back', async (t) => {
    const sides = await startTwoEnvironments(t, { clients });
    const page = await pages.signIn(t, sides.gateway);
    const button = cardOf(page, 'production').getByRole('button', { name: /Send new payments/ });
    await button.click();
    await dialogOf(page).getByText('The bank is ready.').waitFor();
    await page.keyboard.press('Escape');
    await until(5_000, 'the focus is back', () => button.evaluate((one) => one === document.activeElement));
    assert.equal(await page.locator('#records tr').count(), 0);
    assert.equal(await dialogOf(page).count(), 0);
  });

  test('is refused in words to an operator who may look', async (t) => {
    const sides = await startTwoEnvironments(t, { clients, admin: { operators: [reader] } });
    const page = await pages.signIn(t, sides.gateway, {}, 'token-of-rita');
    assert.equal(await page.locator('#operator').innerText(), 'rita, may look');
    await cardOf(page, 'production')
      .getByRole('button', { name: /Send new payments/ })
      .click();
    const dialog = dialogOf(page);
    await dialog.getByText('Your role is to look: orders will be refused.').waitFor();
    await dialog.getByText('Not tried out: This operator may look, but not change anything.').waitFor();
    await dialog.getByLabel('Reason').fill('let me');
    await dialog.getByLabel('Type production to confirm').fill('production');
    await dialog.getByRole('button', { name: 'Switch to production' }).click();
    await dialog.getByRole('alert').getByText('This operator may look, but not change anything.').waitFor();
  });
});

const reader = {
  name: 'rita',
  role: 'read',
  tokenSha256: '19f80cbf2d3870e54f8d2efe42f4004c8a945bc595ce1752e5342fed733cd39c',
};
