/** The console's pages of payments: the list with its filter in the address, and the history of one. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { readAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { axeViolations, lowContrastTexts } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

/** Markup, in case an id is ever used as such. */
const strangeId = '<b>id & co';

describe('the payments in the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  /** One payment is executed; the cancellation of the other one is in doubt. */
  async function startPayments(t: TestContext) {
    const { bank, gateway } = await startGatewayWithBank(t, { deadlines: { connect: '1s', write: '2s' } });
    const pay = async () => String(jsonOf(await call(gateway.url, initiation)).paymentId);
    const executed = await pay();
    bank.setStatus(executed, 'ACCC');
    await call(gateway.url, { method: 'GET', path: `${transfersPath}/${executed}/status` });
    bank.nextPaymentId(strangeId);
    const doubtful = await pay();
    bank.setStatus(doubtful, 'ACTC'); // the answer to the cancellation then has a body, which faults can affect
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { operation: 'cancelPayment' });
    const path = `${transfersPath}/${encodeURIComponent(doubtful)}`;
    await call(gateway.url, { method: 'DELETE', path });
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { operation: 'initiatePayment' });
    await call(gateway.url, initiation);
    await until(10_000, 'the status is stored', async () => {
      const { payment } = await readAdminApi(gateway, `/api/payments/sandbox/${executed}`);
      return Object(payment).status === 'ACCC';
    });
    return { gateway, executed };
  }

  const isAccessible = async (page: Page) => {
    assert.deepEqual(await axeViolations(page), []);
    assert.deepEqual(await lowContrastTexts(page), []);
  };

  test('are listed, filtered by the address, and linked to their histories', async (t) => {
    const { gateway, executed } = await startPayments(t);
    const page = await pages.signIn(t, gateway);
    await page
      .getByRole('row', { name: /cancelPayment/ })
      .getByRole('link', { name: strangeId })
      .waitFor();
    await page.getByRole('link', { name: 'Payments', exact: true }).click();
    const rows = page.locator('#payment-rows tr');
    await rows.nth(1).waitFor();
    assert.match(await rows.nth(0).innerText(), /in-doubt/);
    assert.match(await rows.nth(1).innerText(), /executed\s+ACCC\s+payments\/sepa-credit-transfers/);
    await page.getByRole('link', { name: '1 initiation in doubt, without a payment id' }).waitFor();
    await isAccessible(page);

    await page.getByLabel('Outcome').selectOption('executed');
    await page.getByLabel('From').fill('2026-01-01T00:00:01');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/\/payments\?outcome=executed&from=2/);
    await page.getByText('1 payment. Read again every 15 seconds.').waitFor();
    assert.equal(await page.getByLabel('From').inputValue(), '2026-01-01T00:00:01');
    await page.getByRole('link', { name: executed }).click();
    await page.getByRole('heading', { name: `Payment ${executed}` }).waitFor();
    const history = page.locator('#history-rows tr');
    await history.nth(2).waitFor();
    assert.match(await history.last().innerText(), /status\s+ACCC.*seen by: status read/s);
    await page.goBack();
    await page.getByText('1 payment. Read again every 15 seconds.').waitFor();
  });

  for (const options of [
    { colorScheme: 'light', viewport: { width: 1440, height: 900 } },
    { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
  ] as const)
    test(`have a history that everybody can read: ${options.colorScheme}, ${options.viewport.width} pixels wide`, async (t) => {
      const { gateway } = await startPayments(t);
      const page = await pages.open(t, gateway, options);
      await page.goto(`${gateway.adminUrl}/payments/sandbox/${encodeURIComponent(strangeId)}`);
      await page.getByLabel('Operator token').fill('a-guess');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText('The token is not valid.').waitFor();
      await isAccessible(page);
      await page.getByLabel('Operator token').fill(adminToken);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: `Payment ${strangeId}` }).waitFor();
      await page.locator('#history-rows tr', { hasText: 'doubt' }).last().waitFor();
      await isAccessible(page);
      const width = () => page.evaluate(() => document.documentElement.scrollWidth);
      assert.equal(await width(), options.viewport.width);
      await page.getByRole('link', { name: 'Payments', exact: true }).click();
      await page.locator('#payment-rows tr').nth(1).waitFor();
      assert.equal(await width(), options.viewport.width);
      assert.ok(await isShownWhole(page.locator('#payments-table'), 40), 'the page scrolls, not the table');
      await isAccessible(page);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Operator token').waitFor();
    });

  test('say why they cannot be shown', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    await page.goto(`${gateway.adminUrl}/payments/sandbox/unknown`);
    await page.getByText('No payment with this id is stored in this environment.').waitFor();
    await page.goto(`${gateway.adminUrl}/payments?outcome=nonsense`);
    await page.getByText(/could not be read: outcome: expected in-doubt/).waitFor();
  });
});

/** Whether a table shows all its rows without a scroll bar of its own, also when there are so many. */
const isShownWhole = (table: Locator, rows: number) =>
  table.evaluate((element, count) => {
    const row = element.querySelector('tbody tr');
    for (let added = 0; added < count; added++) row?.after(row.cloneNode(true));
    return element.scrollHeight === element.clientHeight;
  }, rows);
