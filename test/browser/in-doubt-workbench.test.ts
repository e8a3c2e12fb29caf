/** The workbench of payments in doubt: filter, pages of a long list, explanation of a payment. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { call } from '../kit/call.ts';
import { shortDeadlines, startBank, startGateway } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

describe('the workbench of payments in doubt', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('filters by tenant and cause, keeps the filter while the list changes, and passes it to the bulk resolution', async (t) => {
    const { gateway, sandbox, send } = await startTwoEnvironments(t);
    for (const client of ['shop', 'rival', 'rival'] as const) {
      sandbox.injectFault({ name: 'status', status: 504 }, { times: 1 });
      await send(client, initiation);
    }
    const page = await pages.signIn(t, gateway);
    const panel = page.getByRole('region', { name: 'In doubt', exact: true });
    const rows = panel.locator('tbody tr');
    await panel.getByText(/^3 payments: 3 in sandbox\. The oldest is in doubt for /).waitFor();
    await panel.getByLabel('Tenant').selectOption('rival');
    await panel.getByText(/The filter matches 2\.$/).waitFor();
    assert.equal(await rows.count(), 2);
    assert.deepEqual(await rows.locator('td[data-label="Tenant"]').allInnerTexts(), ['rival', 'rival']);

    sandbox.injectFault({ name: 'status', status: 500 }, { times: 1 });
    await send('rival', initiation);
    await panel.getByText(/The filter matches 3\.$/).waitFor();
    await panel.getByLabel('Cause contains').fill('504');
    await panel.getByText(/The filter matches 2\.$/).waitFor();
    await panel.getByRole('button', { name: 'Resolve in bulk…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Resolve payments in doubt' });
    await dialog.getByText('2 payments match.').waitFor();
    assert.equal(await dialog.getByLabel('Tenant').inputValue(), 'rival');
  });

  test('shows a long list in pages, and explains a payment of it', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
    bank.injectFault({ name: 'status', status: 504 });
    await Promise.all(Array.from({ length: 60 }, () => call(gateway.url, initiation)));
    const page = await pages.signIn(t, gateway);
    const rows = page.locator('#in-doubt-rows tr');
    await page.getByText(/^60 payments are in doubt in sandbox: /).waitFor();
    await page.getByRole('button', { name: 'Show 10 more of 10' }).waitFor();
    assert.equal(await rows.count(), 50);
    await page.getByRole('button', { name: 'Show 10 more of 10' }).click();
    assert.equal(await rows.count(), 60);
    const requestId = await rows.last().locator('.id').innerText();
    await page.getByRole('button', { name: `Why? Explain ${requestId}` }).click();
    const result = page.locator('#search-results article');
    await result.waitFor();
    assert.equal(await page.getByLabel('X-Request-ID', { exact: true }).inputValue(), requestId);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'decisions-title');
  });

  test('asks for the name of production before a payment is resolved as not executed', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, {
      environments: { active: 'production', production: { baseUrl: bank.baseUrl } },
      ...shortDeadlines,
      idempotency: { ...shortDeadlines.idempotency, lateAnswer: '0s' },
    });
    bank.injectFault({ name: 'status', status: 504 }, { times: 1 });
    await call(gateway.url, initiation);
    const page = await pages.signIn(t, gateway);
    await page.getByRole('button', { name: /^Resolve [0-9a-f]/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Resolve payment in doubt' });
    const confirmation = dialog.getByLabel('Type production to confirm');
    await dialog.getByLabel(/Executed:/).check();
    assert.equal(await confirmation.isVisible(), false);
    await dialog.getByLabel(/Not executed/).check();
    await dialog.getByLabel('Reason').fill('the bank has no such payment');
    const resolve = dialog.getByRole('button', { name: 'Resolve' });
    await resolve.click();
    assert.equal(await dialog.isVisible(), true, 'the name is required');
    assert.equal(await confirmation.evaluate((input) => input.matches(':invalid')), true);
    await confirmation.fill('production');
    await until(10_000, 'the gateway allows the resolution', async () => {
      await resolve.click({ timeout: 500 }).catch(() => {}); // the dialog may have just closed
      return dialog.isHidden();
    });
    await page.getByText('No payments in doubt.').waitFor();
    assert.equal((await call(gateway.url, initiation)).status, 201);
  });

  test('exports the payments that the filter matches, as CSV and as JSON', async (t) => {
    const { gateway, sandbox, send } = await startTwoEnvironments(t);
    for (const client of ['shop', 'rival'] as const) {
      sandbox.injectFault({ name: 'status', status: 504 }, { times: 1 });
      await send(client, initiation);
    }
    const page = await pages.signIn(t, gateway);
    const panel = page.getByRole('region', { name: 'In doubt', exact: true });
    await panel.getByLabel('Tenant').selectOption('rival');
    const textOf = async (button: string) => {
      const download = page.waitForEvent('download');
      await panel.getByRole('button', { name: button }).click();
      const file = await download;
      return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') };
    };
    const csv = await textOf('Export CSV');
    assert.match(csv.name, /^penstock-in-doubt-\d{8}T\d{6}Z\.csv$/);
    assert.equal(csv.text.trim().split('\r\n').length, 2, 'the header and one payment');
    assert.match(csv.text, /"rival"/);
    const json = JSON.parse((await textOf('Export JSON')).text);
    assert.deepEqual(
      json.map(({ tenant }: { readonly tenant: string }) => tenant),
      ['rival'],
    );
  });
});
