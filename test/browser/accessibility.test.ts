/** Everybody can use the console: by screen reader, by keyboard, in light and dark, on a phone; and nothing leaks from it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { call } from '../kit/call.ts';
import { adminToken, startLine } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { lowContrastTexts, unnamedControls } from './accessibility.ts';
import { skipWithoutChromium, startBrowser } from './browser.ts';

describe('the console', { skip: skipWithoutChromium }, () => {
  const pages = startBrowser();

  /** A page with everything on it: trouble of each weight, a doubt, records of the audit log. */
  async function everything(t: Parameters<typeof startLine>[0], options: Parameters<typeof pages.open>[2]) {
    const { gateway, sandbox } = await startTwoEnvironments(t, {
      clients: [],
      circuit: { minimumCalls: 1, openFor: '60s' },
    });
    sandbox.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    await call(gateway.url, initiation);
    const page = await pages.signIn(t, gateway, options);
    await page.getByRole('button', { name: 'Hold status of production' }).click();
    await page.getByLabel(/Hold closed/).check();
    await page.getByLabel('Reason').fill('a test');
    await page.getByRole('button', { name: 'Give the order' }).click();
    await page.getByRole('link', { name: /production: status is held closed/ }).waitFor();
    await page.getByRole('button', { name: /^Resolve/ }).waitFor();
    await page.locator('#records tr').first().waitFor();
    return page;
  }

  test('gives every control a name, and headings that leave out no level', async (t) => {
    const page = await everything(t, {});
    assert.deepEqual(await unnamedControls(page), []);
    const levels = await page
      .locator('h1:visible, h2:visible, h3:visible')
      .evaluateAll((all) => all.map(({ tagName }) => Number(tagName[1])));
    assert.equal(levels.filter((level) => level === 1).length, 1);
    levels.reduce((before, level) => {
      assert.ok(level <= before + 1, `${levels}`);
      return level;
    }, 0);
    for (const role of ['banner', 'main', 'navigation'] as const)
      assert.equal(await page.getByRole(role).count(), 1, role);
    await page.getByRole('button', { name: 'Hold read of sandbox' }).click();
    assert.deepEqual(await unnamedControls(page), []);
    assert.equal(
      await page.evaluate(
        () =>
          document.querySelectorAll('[id]').length -
          new Set([...document.querySelectorAll('[id]')].map(({ id }) => id)).size,
      ),
      0,
    );
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`can be read in ${colorScheme}: every text has a contrast of at least 4.5 to 1`, async (t) => {
      const page = await everything(t, { colorScheme });
      assert.deepEqual(await lowContrastTexts(page), []);
      await page.getByRole('button', { name: 'Send new payments here…' }).click();
      await page.getByText('The bank is ready.').waitFor();
      assert.deepEqual(await lowContrastTexts(page), []);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Your token').waitFor();
      assert.deepEqual(await lowContrastTexts(page), []);
    });
  }

  test('fits a telephone of 360 pixels, and its dialogs do', async (t) => {
    const page = await everything(t, { viewport: { width: 360, height: 740 } });
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(await width(), 360);
    await page.getByRole('button', { name: 'Send new payments here…' }).click();
    await page.getByText('The bank is ready.').waitFor();
    assert.equal(await width(), 360);
    const box = await page.getByRole('dialog').boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 360 && box.height <= 740, JSON.stringify(box));
  });

  test('lets nobody in with a wrong token, and says so', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Your token').fill('a-guess');
    await page.getByRole('button', { name: 'Open the console' }).click();
    await page.getByRole('alert').getByText('This token is not known here.').waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
    assert.equal(await tokenIn(page), null);
    await page.getByLabel('Your token').fill(adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
  });

  test('says of a token that no header can hold that it is the token', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Your token').fill(`“${adminToken}”`);
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/^A token has no blanks, accents or curly quotes/)
      .waitFor();
    assert.equal(await tokenIn(page), null);
  });

  test('keeps the token in the tab alone: never in an address, a cookie or lasting storage, and no more after signing out', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.open(t, gateway);
    const addresses: string[] = [];
    page.on('request', (request) => void addresses.push(request.url()));
    await page.getByLabel('Your token').fill(adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    assert.ok(addresses.some((address) => address.endsWith('/api/events')));
    for (const address of [...addresses, page.url()]) assert.ok(!address.includes(adminToken), address);
    assert.deepEqual(await page.context().cookies(), []);
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    assert.equal(await tokenIn(page), adminToken);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Your token').waitFor();
    assert.equal(await tokenIn(page), null);
    assert.equal(await page.getByLabel('Your token').inputValue(), '');
  });
});

const tokenIn = (page: Page) => page.evaluate(() => sessionStorage.getItem('penstock-token'));
