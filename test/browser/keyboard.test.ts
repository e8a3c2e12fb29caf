/** A walk through the console with the keyboard alone: no step uses the pointer, and every stop has a visible focus. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { adminToken } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { tabTo } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

describe('the console with the keyboard alone', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('signs in, holds a circuit, resolves payments in doubt, explains one, changes the period, and signs out', async (t) => {
    const { gateway, sandbox } = await startTwoEnvironments(t, { clients: [] });
    for (let payments = 0; payments < 3; payments++) {
      sandbox.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
      await call(gateway.url, initiation);
    }
    const page = await pages.open(t, gateway, { reducedMotion: 'reduce' });
    const { keyboard } = page;
    const button = (name: string | RegExp) => page.getByRole('button', { name });
    const dialog = page.getByRole('dialog');

    await page.getByLabel('Operator token').waitFor();
    await keyboard.type(adminToken);
    await keyboard.press('Enter');
    await page.getByText(/^3 payments are in doubt in sandbox: /).waitFor();

    await tabTo(page, button('Hold read of sandbox'));
    await keyboard.press('Enter');
    await dialog.waitFor();
    await tabTo(page, dialog.getByLabel(/Hold open/));
    await keyboard.press('Space');
    await tabTo(page, dialog.getByLabel('Reason'));
    await keyboard.type('the bank has called');
    await keyboard.press('Enter'); // a new line: the reason has two lines
    await tabTo(page, dialog.getByRole('button', { name: 'Apply' }));
    await keyboard.press('Enter');
    await page.getByText(/sandbox: read circuit held open until/).waitFor();

    await tabTo(page, page.locator('#in-doubt-why'));
    await keyboard.type('no such cause');
    await page.getByText(/The filter matches 0\.$/).waitFor();
    await keyboard.press('Control+A');
    await keyboard.press('Delete');
    await tabTo(page, button(/^Why\? Explain /).first());
    await keyboard.press('Enter');
    await page.locator('#search-results article').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'decisions-title');

    await page.reload();
    await page.getByText(/^3 payments are in doubt in sandbox: /).waitFor();
    await tabTo(page, button(/^Resolve [0-9a-f]/).first());
    await keyboard.press('Enter');
    await dialog.waitFor();
    await tabTo(page, dialog.getByLabel(/Executed:/));
    await keyboard.press('Space');
    await tabTo(page, dialog.getByLabel('Reason'));
    await keyboard.type('the bank says so');
    await tabTo(page, dialog.getByRole('button', { name: 'Resolve' }));
    await keyboard.press('Enter');
    await page.getByText(/^2 payments are in doubt in sandbox: /).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'in-doubt-title');

    await tabTo(page, button('Resolve in bulk…'));
    await keyboard.press('Enter');
    await dialog.getByText('2 payments match.').waitFor();
    await keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await tabTo(page, page.getByText('Effective configuration', { exact: true }));
    await keyboard.press('Enter');
    await page.getByRole('region', { name: 'Effective configuration' }).getByText('statusCache:').waitFor();
    await tabTo(page, button('Sign out'));
    await keyboard.press('Enter');
    await page.getByLabel('Operator token').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'token');
  });

  test('reaches every control of the page with the Tab key, in the order of the page', async (t) => {
    const { gateway } = await startTwoEnvironments(t, { clients: [] });
    const page = await pages.signIn(t, gateway);
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
    const controls = page.locator(
      ':is(a[href], button, input, select, textarea, summary, [tabindex="0"]):visible:not(:disabled)',
    );
    const expected = await controls.evaluateAll((all) =>
      all.map((one, index) => {
        one.setAttribute('data-stop', String(index));
        return String(index);
      }),
    );
    const stops: string[] = [];
    await page.evaluate(() => {
      const { activeElement } = document;
      if (activeElement instanceof HTMLElement) activeElement.blur();
      document.body.tabIndex = -1;
      document.body.focus();
    });
    const maxStops = expected.length * 8; // a date field is several stops
    for (let presses = 0; presses < maxStops && stops.at(-1) !== expected.at(-1); presses++) {
      await page.keyboard.press('Tab');
      const stop = await page.evaluate(() => document.activeElement?.getAttribute('data-stop') ?? 'none');
      if (stop !== stops.at(-1)) stops.push(stop);
    }
    assert.deepEqual(stops, expected);
  });
});
