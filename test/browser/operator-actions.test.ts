/** What operators can do in the console beside the switch: circuits, doubts, the cache, the audit log, decisions, settings. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { startLine } from '../kit/gateway.ts';
import { initiation, transfers } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, startBrowser } from './browser.ts';

describe('in the console', { skip: skipWithoutChromium }, () => {
  const pages = startBrowser();

  test('a circuit is held open with a reason and a time, shown as trouble, and let go again', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.signIn(t, gateway);
    const hold = page.getByRole('button', { name: 'Hold write of sandbox' });
    await hold.click();
    const dialog = page.getByRole('dialog', { name: 'Circuit of write, sandbox' });
    await dialog.getByLabel(/Hold open/).check();
    await dialog.getByLabel('For').selectOption('30 minutes');
    await dialog.getByLabel('Reason').fill('the bank has called');
    await dialog.getByRole('button', { name: 'Give the order' }).click();

    await page.getByText(/sandbox: write is held open until/).waitFor();
    await page.getByRole('heading', { name: '1 thing needs attention' }).waitFor();
    const row = page.getByRole('article', { name: 'sandbox' }).getByRole('row', { name: /write/ });
    await row.getByText('held open').waitFor();
    assert.match(await row.innerText(), /until .*: the bank has called/);
    assert.equal((await call(gateway.url, initiation)).header('Penstock-Error'), 'CIRCUIT_OPEN');
    const [{ until: end }] = JSON.parse((await callAdminApi(gateway, 'GET', '/api/circuits')).text);
    assert.ok(Math.abs(Date.parse(end) - Date.now() - 30 * 60_000) < 20_000);

    await hold.click();
    await dialog.getByLabel(/Let it go/).check();
    await dialog.getByLabel('Reason').fill('all is well');
    await dialog.getByRole('button', { name: 'Give the order' }).click();
    await page.getByRole('heading', { name: 'All is well' }).waitFor();
    await until(5_000, 'the focus is back', () => hold.evaluate((one) => one === document.activeElement));
    assert.equal((await call(gateway.url, initiation)).status, 201);
  });

  test('a doubt is resolved as happened with the payment id, after what the bank said', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    const requestId = randomUUID();
    const one = { ...initiation, headers: [['X-Request-ID', requestId] as const, ...initiation.headers] };
    assert.equal((await call(gateway.url, one)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
    const page = await pages.signIn(t, gateway);
    await page.getByText('1 payment is in doubt: ask the bank, then say what happened.').waitFor();
    await page.getByRole('button', { name: `Resolve ${requestId}` }).click();
    const dialog = page.getByRole('dialog', { name: 'Resolve a doubt' });
    await dialog.getByLabel(/It did not happen/).check();
    assert.equal(await dialog.getByLabel('Payment id').isVisible(), false);
    await dialog.getByLabel('Reason').fill('the bank says so');
    await dialog.getByRole('button', { name: 'Resolve' }).click();
    await dialog.getByText(/The bank may still act on it: try again in \d+ s\./).waitFor();

    await dialog.getByLabel(/It happened/).check();
    await dialog.getByLabel('Payment id').fill(bank.payments[0]?.paymentId ?? '');
    await dialog.getByRole('button', { name: 'Resolve' }).click();
    await page.getByText('Nothing is in doubt.').waitFor();
    await page.getByRole('heading', { name: 'All is well' }).waitFor();
    const focused = await page.evaluate(() => document.activeElement?.id);
    assert.equal(focused, 'doubts-title', 'the button that had the focus is gone');
    assert.match((await call(gateway.url, one)).text, new RegExp(bank.payments[0]?.paymentId ?? 'none'));
    assert.equal(bank.payments.length, 1);
  });

  test('a doubt that did not happen is released, so that a repeat is sent', async (t) => {
    const { bank, gateway } = await startLine(t, {
      deadlines: { connect: '100ms', write: '300ms', read: '300ms', status: '300ms' },
      shaping: { maxWait: { write: '200ms', read: '200ms', status: '200ms' } },
      idempotency: { lateAnswer: '0s', wait: '100ms' },
    });
    bank.injectFault({ name: 'reset', strikes: 'before-effect' }, { times: 1 });
    const one = { ...initiation, headers: [['X-Request-ID', randomUUID()] as const, ...initiation.headers] };
    await call(gateway.url, one);
    const page = await pages.signIn(t, gateway);
    await page.getByRole('button', { name: /^Resolve / }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/It did not happen/).check();
    await dialog.getByLabel('Reason').fill('the bank has no such payment');
    await until(10_000, 'the bank can act on it no more', async () => {
      if (await dialog.isHidden()) return true;
      const order = dialog.getByRole('button', { name: 'Resolve' });
      await order.click({ timeout: 500 }).catch(() => {}); // not allowed yet, or it has just gone
      return false;
    });
    await page.getByText('Nothing is in doubt.').waitFor();
    assert.equal((await call(gateway.url, one)).status, 201);
    assert.equal(bank.payments.length, 1);
  });

  test('cached statuses of one payment, and of all, are forgotten', async (t) => {
    const { bank, gateway } = await startLine(t, {
      statusCache: { pendingTtl: '10s', pendingTtlMax: '60s' },
    });
    const paid = JSON.parse((await call(gateway.url, initiation)).text);
    const read = () => call(gateway.url, { method: 'GET', path: `${transfers}/${paid.paymentId}/status` });
    const asked = () => bank.requests.filter(({ operation }) => operation === 'getPaymentStatus').length;
    await read();
    await read();
    assert.equal(asked(), 1);
    const page = await pages.signIn(t, gateway);
    await page.getByLabel('Environment', { exact: true }).selectOption('sandbox');
    await page.getByLabel('Payment id', { exact: true }).fill(paid.paymentId);
    await page.getByRole('button', { name: 'Forget' }).click();
    await page.getByText(`Forgotten: ${paid.paymentId}.`).waitFor();
    await read();
    assert.equal(asked(), 2);
    await page.getByLabel('Payment id', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Forget' }).click();
    await page.getByText('Every status is forgotten.').waitFor();
    await read();
    assert.equal(asked(), 3);
  });

  test('the audit log is shown, and its whole chain verified', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.signIn(t, gateway);
    await page.getByText('Nothing is recorded yet.').waitFor();
    const order = { hold: 'closed', reason: '<b>a test</b> & more', for: '10min' };
    await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/read', order);
    const record = page.locator('#records tr');
    await record.getByText('<b>a test</b> & more').waitFor();
    assert.match((await record.locator('time').first().getAttribute('title')) ?? '', /^\d{4}-.*T.*Z$/);
    await page.getByRole('button', { name: 'Verify the whole chain' }).click();
    await page.getByText('1 record, the chain holds.').waitFor();

    const first = await record.elementHandle();
    await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/read', { ...order, reason: 'another' });
    await record.getByText('another').waitFor();
    assert.equal(await first?.evaluate((one) => one.isConnected), true, 'what is selected in it stays so');
  });

  test('what an operator wrote into the audit log cannot turn around what stands beside it', async (t) => {
    const { gateway } = await startLine(t);
    const [environment, why] = ['\u202Enoitcudorp', 'why there is no environment of this name'];
    await callAdminApi(gateway, 'PUT', '/api/environments/active', { environment, reason: 'a test' });
    const page = await pages.signIn(t, gateway);
    const beside = page.locator('#records').getByText(why, { exact: true });
    await beside.waitFor();
    assert.equal(await beside.evaluate((one) => getComputedStyle(one).unicodeBidi), 'isolate');
    const widths = await page
      .locator('#records bdi')
      .evaluateAll((all) => all.map((one) => [one.textContent, one.getBoundingClientRect().x]));
    assert.deepEqual(
      widths.toSorted(([, one], [, other]) => Number(one) - Number(other)).map(([text]) => text),
      [`environment ${environment}`, why],
    );
  });

  test('an X-Request-ID tells why a call was refused, step by step; one that nobody knows is told so', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.signIn(t, gateway);
    const known = randomUUID();
    const decision = {
      at: '2026-11-21T03:00:00.000Z',
      xRequestId: known,
      operation: 'initiatePayment',
      client: 'shop',
      tenant: 'shop',
      environment: 'sandbox',
      status: 503,
      error: 'CIRCUIT_OPEN',
      durationMs: 3.2,
      why: 'The bank fails; nothing was sent.',
      steps: [{ afterMs: 1.5, what: 'circuit', state: 'open', lane: 'write' }],
    };
    await page.route(`**/api/decisions/${known}`, (route) => route.fulfill({ json: [decision] }));
    const search = page.getByRole('button', { name: 'Search' });
    await page.getByLabel('X-Request-ID', { exact: true }).fill(` ${known} `);
    await search.click();
    await page.getByRole('heading', { name: /503 CIRCUIT_OPEN/ }).waitFor();
    const told = await page.locator('#found').innerText();
    for (const part of [/nothing was sent/, /\+2 ms\s+circuit\s+state open · lane write/, /shop/])
      assert.match(told, part);

    const unknown = randomUUID();
    await page.getByLabel('X-Request-ID', { exact: true }).fill(unknown);
    await search.click();
    await page.getByText(`This instance remembers nothing of ${unknown}`).waitFor();
  });

  test('the configuration in effect is shown, without its secrets', async (t) => {
    const operators = [{ name: 'rita', role: 'read', tokenSha256: 'ab'.repeat(32) }];
    const { gateway } = await startLine(t, { admin: { operators } });
    const page = await pages.signIn(t, gateway);
    await page.getByText('The configuration in effect').click();
    const settings = page.getByRole('region', { name: 'The configuration in effect' });
    await settings.getByText('statusCache:').waitFor();
    const text = await settings.innerText();
    assert.match(text, /tokenSha256: \*\*\*/);
    assert.doesNotMatch(text, /abab/);
  });
});
