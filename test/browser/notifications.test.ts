/** The console's section about webhooks, waiting reads and polls. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failedMessage, manageStored, storeSubscriptions } from '../kit/stored-subscriptions.ts';
import { newSubscriptions } from '../kit/subscription-table.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { axeViolations } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';
import { startSampleDashboard } from './sample-dashboard.ts';

const since = Date.now() - 4 * 24 * 3_600_000;
const dead = {
  ...failedMessage,
  id: '0b6a1d0a-6c0c-4f0e-9b4e-0d1f0e0e8a11',
  since,
  final: true,
  transactionStatus: 'ACSC',
  failedAttempts: 17,
  why: 'the endpoint fails (5xx)',
  deadSince: since + 72 * 3_600_000,
};
const figures = { waits: 312, streams: 24, pollsPerSecond: 3.4, overduePolls: 2 };

const storeSample = (t: TestScope) =>
  storeSubscriptions(
    t,
    { paymentId: 'active-payment', since },
    { paymentId: 'failing-payment', failedReads: 4, readError: 'the bank answered 401', since },
    { paymentId: 'late-payment', message: { ...failedMessage, since }, since },
    { paymentId: 'dead-payment', message: dead, since },
    { paymentId: 'another-dead-payment', message: dead, since },
    { paymentId: 'payment-of-till', tenant: 'tenant-2', message: dead, since, url: 'https://till.example/x' },
  );

describe('the section of the console about notifications', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('shows the figures and the dead letters, sends one or all again, and ends a subscription, without a violation of axe-core', async (t) => {
    const { manage } = await storeSample(t);
    const dashboard = await startSampleDashboard(t, { subscriptions: manage, figures });
    const options = { colorScheme: 'light', viewport: { width: 1440, height: 900 } } as const;
    const page = await pages.signIn(t, dashboard, options, dashboard.token);
    const panel = page.getByRole('region', { name: 'Notifications', exact: true });
    const rows = panel.locator('tbody tr');
    await panel.getByText('3 dead letters.').waitFor();
    const shown = await panel.locator('#notification-figures').innerText();
    assert.match(
      shown.replaceAll(/\s+/g, ' '),
      /Waiting reads 312 Streams 24 Polls\/s 3\.4 of at most 10 Polls overdue 2 Active subscriptions 6 Undelivered 1 Dead letters 3/,
    );
    assert.deepEqual(await axeViolations(page, '#notifications'), []);

    await panel.getByRole('button', { name: 'Resend the webhook of dead-payment', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('ACSC, the final status. 17 failed attempts.').waitFor();
    assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);
    await dialog.getByLabel('Reason').fill('the shop has asked');
    await dialog.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('The webhook is due now.').waitFor();
    await panel.getByText('2 dead letters.').waitFor();

    await panel.getByRole('button', { name: 'Resend dead letters…' }).click();
    await dialog.getByLabel('Tenant').selectOption({ label: 'till: 1 dead letter' });
    assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);
    await dialog.getByLabel('Reason').fill('the endpoint works again');
    await dialog.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('1 webhook is due now.').waitFor();
    await panel.getByText('1 dead letter.').waitFor();

    await panel.getByLabel('Payment id, any state').fill('active-payment');
    await page.keyboard.press('Enter');
    await panel.getByText('1 subscription of this payment.').waitFor();
    await panel.getByRole('button', { name: 'End the subscription of active-payment' }).click();
    await dialog.getByLabel('Reason').fill('the client has left');
    assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);
    await dialog.getByRole('button', { name: 'End subscription' }).click();
    await panel.getByText('No subscription of this payment.').waitFor();
    for (const record of [/resend webhook/, /resend dead letters/, /end subscription.*the client has left/])
      await page.getByRole('row', { name: record }).waitFor();

    await panel.getByLabel('Payment id, any state').fill('');
    await panel.getByLabel('State', { exact: true }).selectOption('failing');
    await panel.getByText('1 failing subscription.').waitFor();
    assert.match(
      await rows.innerText(),
      /4 failed reads of the status, the last because the bank answered 401/,
    );
  });

  test('says how to turn webhooks on while no client has them, and shows an operator who may only read no action', async (t) => {
    const off = await startSampleDashboard(t, {
      subscriptions: manageStored(await newSubscriptions(t), []),
    });
    const page = await pages.signIn(t, off, {}, off.token);
    const panel = page.getByRole('region', { name: 'Notifications', exact: true });
    await panel.getByText(/^No client has webhooks\. .* add its URLs and a secret/).waitFor();
    await panel.getByRole('link', { name: 'How webhooks work' }).waitFor();
    assert.equal(await panel.locator('#subscriptions').isVisible(), false);

    const { manage } = await storeSample(t);
    const on = await startSampleDashboard(t, { subscriptions: manage });
    const asReader = await pages.signIn(t, on, {}, 'token-of-rita');
    const read = asReader.getByRole('region', { name: 'Notifications', exact: true });
    await read.getByText('3 dead letters.').waitFor();
    assert.equal(await read.getByRole('button').count(), 0);
  });

  test('has no violation of axe-core in the dark theme on a narrow screen', async (t) => {
    const { manage } = await storeSample(t);
    const dashboard = await startSampleDashboard(t, { subscriptions: manage, figures });
    const options = { colorScheme: 'dark', viewport: { width: 390, height: 844 } } as const;
    const page = await pages.signIn(t, dashboard, options, dashboard.token);
    await page.getByText('3 dead letters.').waitFor();
    assert.deepEqual(await axeViolations(page, '#notifications'), []);
  });
});
