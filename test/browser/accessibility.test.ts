/** Accessibility of the console (screen reader, keyboard, light and dark, small screens), and the handling of the token. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { call } from '../kit/call.ts';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { axeViolations, lowContrastTexts } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

describe('the accessibility of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  /** Opens a page that shows everything: alerts of each level, a payment in doubt, records of the audit log. */
  async function openFullPage(t: TestContext, options: BrowserContextOptions = {}) {
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
    await page.getByLabel('Type production to confirm').fill('production');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('link', { name: /The status circuit of production is held closed/ }).waitFor();
    await page.getByRole('button', { name: /^Resolve/ }).waitFor();
    await page.locator('#records tr').first().waitFor();
    return page;
  }

  for (const options of [
    { colorScheme: 'light', viewport: { width: 1440, height: 900 } },
    { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  ] as const) {
    const { colorScheme, viewport } = options;
    test(`axe-core finds no violation, and no text with little contrast, on the page and in its dialogs: ${colorScheme}, ${viewport.width} pixels wide`, async (t) => {
      const page = await openFullPage(t, options);
      assert.deepEqual(await axeViolations(page), []);
      await page.getByText('Effective configuration').click();
      await page.getByRole('region', { name: 'Effective configuration' }).getByText('statusCache:').waitFor();
      await page
        .getByRole('button', { name: /^Why\? Explain / })
        .first()
        .click();
      await page.locator('#search-results article').waitFor();
      assert.deepEqual(await axeViolations(page), []);
      assert.deepEqual(await lowContrastTexts(page), []);
      const ids = await page.locator('[id]').evaluateAll((all) => all.map(({ id }) => id));
      assert.deepEqual(ids, [...new Set(ids)]);
      for (const name of [/^Resolve [0-9a-f]/, 'Hold read of sandbox', 'Make active…']) {
        await page.getByRole('button', { name }).first().click();
        await page.getByRole('dialog').waitFor();
        assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);
        assert.deepEqual(await lowContrastTexts(page), []);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      await page.route('**/api/audit', (route) => route.fulfill({ status: 503, json: { error: 'a test' } }));
      await page.reload();
      await page.getByText('The audit log could not be read: a test').waitFor();
      assert.deepEqual(await axeViolations(page), []);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Operator token').waitFor();
      assert.deepEqual(await axeViolations(page), []);
      assert.deepEqual(await lowContrastTexts(page), []);
    });
  }

  test('the page and its dialogs fit a screen of 360 pixels', async (t) => {
    const page = await openFullPage(t, { viewport: { width: 360, height: 740 } });
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(await width(), 360);
    await page.getByRole('button', { name: 'Make active…' }).click();
    await page.getByText('Pre-flight check passed.').waitFor();
    assert.equal(await width(), 360);
    const box = await page.getByRole('dialog').boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 360 && box.height <= 740, JSON.stringify(box));
  });
});

describe('the sign-in of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('refuses a wrong token with a message, and accepts the right one afterwards', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Operator token').fill('a-guess');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The token is not valid.').waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
    assert.equal(await storedToken(page), null);
    await page.getByLabel('Operator token').fill(adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
  });

  test('explains that a token contains characters that no header can carry', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Operator token').fill(`“${adminToken}”`);
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/^The token contains spaces, accents or curly quotes/)
      .waitFor();
    assert.equal(await storedToken(page), null);
  });

  test('keeps the token in the session storage of the tab only, until sign-out', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.open(t, gateway);
    const urls: string[] = [];
    page.on('request', (request) => void urls.push(request.url()));
    await page.getByLabel('Operator token').fill(adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    assert.ok(urls.some((url) => url.endsWith('/api/events')));
    for (const url of [...urls, page.url()]) assert.ok(!url.includes(adminToken), url);
    assert.deepEqual(await page.context().cookies(), []);
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    assert.equal(await storedToken(page), adminToken);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Operator token').waitFor();
    assert.equal(await storedToken(page), null);
    assert.equal(await page.getByLabel('Operator token').inputValue(), '');
  });
});

const storedToken = (page: Page) => page.evaluate(() => sessionStorage.getItem('penstock-token'));
