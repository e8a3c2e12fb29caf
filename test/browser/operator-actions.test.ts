/** What operators do in the console, except switching environments: circuits, payments in doubt, cache, audit log, search. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { withFile } from '../kit/folder.ts';
import { shortDeadlines, startBank, startGateway, startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

describe('the actions of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('hold a circuit open with a reason and a time, show it as an alert, and release it', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    const hold = page.getByRole('button', { name: 'Hold write of sandbox' });
    await hold.click();
    const dialog = page.getByRole('dialog', { name: 'Hold circuit: sandbox, write' });
    await dialog.getByLabel(/Hold open/).check();
    await dialog.getByLabel('Duration').selectOption('30 minutes');
    await dialog.getByLabel('Reason').fill('the bank has called');
    await dialog.getByRole('button', { name: 'Apply' }).click();

    await page
      .getByText(
        /The write circuit of sandbox is held open by an operator until .* UTC: the bank has called\./,
      )
      .waitFor();
    await page.getByRole('heading', { name: '1 active alert' }).waitFor();
    const row = page.getByRole('article', { name: 'sandbox' }).getByRole('row', { name: /write/ });
    await row.getByText('held open').waitFor();
    assert.match(await row.innerText(), /until .*: the bank has called/);
    assert.equal((await call(gateway.url, initiation)).header('Penstock-Error'), 'CIRCUIT_OPEN');
    const [{ until: end }] = JSON.parse((await callAdminApi(gateway, 'GET', '/api/circuits')).text);
    assert.ok(Math.abs(Date.parse(end) - Date.now() - 30 * 60_000) < 20_000);

    await hold.click();
    await dialog.getByLabel(/Release/).check();
    await dialog.getByLabel('Reason').fill('all is well');
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
    await until(5_000, 'the focus is back', () => hold.evaluate((one) => one === document.activeElement));
    assert.equal((await call(gateway.url, initiation)).status, 201);
  });

  test('hold a circuit of production only after its name was typed, and release it without', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, {
      environments: { active: 'production', production: { baseUrl: bank.baseUrl } },
    });
    const page = await pages.signIn(t, gateway);
    await page.getByRole('button', { name: 'Hold read of production' }).click();
    const dialog = page.getByRole('dialog', { name: 'Hold circuit: production, read' });
    await dialog.getByLabel(/Hold open/).check();
    await dialog.getByLabel('Reason').fill('the bank has called');
    const [apply, name] = [
      dialog.getByRole('button', { name: 'Apply' }),
      dialog.getByLabel('Type production to confirm'),
    ];
    await name.fill('sandbox');
    await apply.click();
    assert.equal(await name.evaluate((one: HTMLInputElement) => one.validity.patternMismatch), true);
    await name.fill('production');
    await apply.click();
    await page.getByRole('article', { name: 'production' }).getByText('held open').waitFor();

    await page.getByRole('button', { name: 'Hold read of production' }).click();
    assert.equal(await name.isVisible(), false);
    await dialog.getByLabel('Reason').fill('all is well');
    await apply.click();
    await page.getByText('production: read circuit released.').waitFor();
  });

  test('resolve a payment in doubt as happened, with the payment id that the bank gave', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    const requestId = randomUUID();
    const one = { ...initiation, headers: [['X-Request-ID', requestId] as const, ...initiation.headers] };
    assert.equal((await call(gateway.url, one)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
    const page = await pages.signIn(t, gateway);
    await page.getByText(/^1 payment is in doubt in sandbox: /).waitFor();
    await page.getByRole('button', { name: `Resolve ${requestId}` }).click();
    const dialog = page.getByRole('dialog', { name: 'Resolve payment in doubt' });
    await dialog.getByLabel(/Not executed/).check();
    assert.equal(await dialog.getByLabel('Payment id').isVisible(), false);
    await dialog.getByLabel('Reason').fill('the bank says so');
    await dialog.getByRole('button', { name: 'Resolve' }).click();
    await dialog.getByText(/The bank may still execute the request: try again in \d+ s\./).waitFor();

    await dialog.getByLabel(/Executed:/).check();
    await dialog.getByLabel('Payment id').fill(bank.payments[0]?.paymentId ?? '');
    await dialog.getByRole('button', { name: 'Resolve' }).click();
    await page.getByText('No payments in doubt.').waitFor();
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
    const focused = await page.evaluate(() => document.activeElement?.id);
    assert.equal(focused, 'in-doubt-title', 'the button that had the focus is gone');
    assert.match((await call(gateway.url, one)).text, new RegExp(bank.payments[0]?.paymentId ?? 'none'));
    assert.equal(bank.payments.length, 1);
  });

  test('resolve several payments in doubt of production at once, after a preview and with its name', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, {
      environments: { active: 'production', production: { baseUrl: bank.baseUrl } },
    });
    for (const status of [504, 504, 500]) {
      bank.injectFault({ name: 'status', status }, { times: 1 });
      assert.equal((await call(gateway.url, initiation)).status, status);
    }
    const page = await pages.signIn(t, gateway);
    await page.getByRole('button', { name: 'Resolve in bulk…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Resolve payments in doubt' });
    await dialog.getByText('3 payments match.').waitFor();
    await dialog.getByLabel('Cause contains').fill('504');
    await dialog.getByLabel('From').fill('2020-01-01T00:00:00');
    await dialog.getByText('2 payments match.').waitFor();
    await dialog.getByLabel(/Executed:/).check();
    await dialog.getByLabel('Reason').fill('the bank, ticket 4711');
    const resolve = dialog.getByRole('button', { name: 'Resolve all' });
    await resolve.click();
    assert.equal(await dialog.isVisible(), true, 'the name is required');
    await dialog.getByLabel('Type production to confirm').fill('production');
    await resolve.click();
    await page.getByText('2 payments resolved.').waitFor();
    await page.getByText(/^1 payment is in doubt in /).waitFor();
    await page.getByRole('row', { name: /resolve in-doubt requests.*ticket 4711/ }).waitFor();
  });

  test('resolve a payment in doubt as not happened, so that a repeat is sent to the bank', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, {
      ...shortDeadlines,
      idempotency: { ...shortDeadlines.idempotency, lateAnswer: '0s' },
    });
    bank.injectFault({ name: 'reset', strikes: 'before-effect' }, { times: 1 });
    const one = { ...initiation, headers: [['X-Request-ID', randomUUID()] as const, ...initiation.headers] };
    await call(gateway.url, one);
    const page = await pages.signIn(t, gateway);
    await page.getByRole('button', { name: /^Resolve / }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/Not executed/).check();
    await dialog.getByLabel('Reason').fill('the bank has no such payment');
    await until(10_000, 'the gateway allows the resolution', async () => {
      if (await dialog.isHidden()) return true;
      const resolve = dialog.getByRole('button', { name: 'Resolve' });
      await resolve.click({ timeout: 500 }).catch(() => {}); // the dialog may have just closed
      return false;
    });
    await page.getByText('No payments in doubt.').waitFor();
    assert.equal((await call(gateway.url, one)).status, 201);
    assert.equal(bank.payments.length, 1);
  });

  test('remove the cached status of one payment, and of all', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, {
      statusCache: { pendingTtl: '10s', pendingTtlMax: '60s' },
    });
    const paid = JSON.parse((await call(gateway.url, initiation)).text);
    const read = () =>
      call(gateway.url, { method: 'GET', path: `${transfersPath}/${paid.paymentId}/status` });
    const statusReads = () =>
      bank.requests.filter(({ operation }) => operation === 'getPaymentStatus').length;
    await read();
    await read();
    assert.equal(statusReads(), 1);
    const page = await pages.signIn(t, gateway);
    const form = page.locator('#purge');
    await form.getByLabel('Environment', { exact: true }).selectOption('sandbox');
    await form.getByLabel('Payment id', { exact: true }).fill(paid.paymentId);
    await page.getByRole('button', { name: 'Purge' }).click();
    await page.getByText(`Purged: ${paid.paymentId}.`).waitFor();
    await read();
    assert.equal(statusReads(), 2);
    await form.getByLabel('Payment id', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Purge' }).click();
    await page.getByText('All cached statuses of sandbox purged.').waitFor();
    await read();
    assert.equal(statusReads(), 3);
  });

  test('show the audit log as it grows, and verify its hash chain', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    await page.getByText('No records.').waitFor();
    const hold = { hold: 'closed', reason: '<b>a test</b> & more', for: '10min' };
    await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/read', hold);
    const record = page.locator('#records tr');
    await record.getByText('<b>a test</b> & more').waitFor();
    assert.match((await record.locator('time').first().getAttribute('title')) ?? '', /^\d{4}-.*T.*Z$/);
    await page.getByRole('button', { name: 'Verify hash chain' }).click();
    await page.getByText('Hash chain intact: 1 record.').waitFor();

    const first = await record.elementHandle();
    await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/read', { ...hold, reason: 'another' });
    await record.getByText('another').waitFor();
    assert.equal(
      await first?.evaluate((one) => one.isConnected),
      true,
      'a selection in the first record is kept',
    );
  });

  test('isolate the text direction of what operators wrote into the audit log', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const environment = '\u202Enoitcudorp';
    await callAdminApi(gateway, 'PUT', '/api/environments/active', { environment, reason: 'a test' });
    const page = await pages.signIn(t, gateway);
    const neighbour = page.locator('#records').getByText(/^why unknown environment/);
    await neighbour.waitFor();
    assert.equal(await neighbour.evaluate((one) => getComputedStyle(one).unicodeBidi), 'isolate');
    const positions = await page
      .locator('#records bdi')
      .evaluateAll((all) => all.map((one) => [one.textContent, one.getBoundingClientRect().x]));
    assert.deepEqual(
      positions.toSorted(([, one], [, other]) => Number(one) - Number(other)).map(([text]) => text),
      [`environment ${environment}`, await neighbour.textContent()],
    );
  });

  test('explain step by step why a call was refused, and report an unknown X-Request-ID', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    const known = randomUUID();
    const decision = {
      at: '2026-11-21T03:00:00.000Z',
      xRequestId: known,
      instance: 'gateway-1',
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
    const found = { requests: [decision], searchedFrom: decision.at, complete: true, notStored: 0 };
    await page.route(
      ({ pathname, searchParams }) => pathname === '/api/search' && searchParams.get('requestId') === known,
      (route) => route.fulfill({ json: found }),
    );
    const search = page.getByRole('button', { name: 'Search' });
    await page.getByLabel('X-Request-ID', { exact: true }).fill(` ${known} `);
    await search.click();
    await page.getByRole('heading', { name: /503 CIRCUIT_OPEN/ }).waitFor();
    const text = await page.locator('#search-results').innerText();
    for (const part of [/nothing was sent/, /\+2 ms\s+circuit\s+state open · lane write/, /shop/])
      assert.match(text, part);

    const unknown = randomUUID();
    await page.getByLabel('X-Request-ID', { exact: true }).fill(unknown);
    await search.click();
    await page.getByText(`No record of ${unknown}`).waitFor();
  });

  test('show the configuration in effect as a valid configuration file, with its secrets masked', async (t) => {
    const operators = [{ name: 'rita', role: 'read', tokenSha256: 'ab'.repeat(32) }];
    const { gateway } = await startGatewayWithBank(t, { admin: { operators } });
    const page = await pages.signIn(t, gateway);
    await page.getByText('Effective configuration').click();
    const settings = page.getByRole('region', { name: 'Effective configuration' });
    await settings.getByText('statusCache:').waitFor();
    const text = await settings.innerText();
    assert.match(text, /\n {2}paymentServices: \[payments, bulk-payments, periodic-payments\]\n/);
    assert.match(text, /\n {2}window: 1d\n/);
    assert.doesNotMatch(text, /abab/);
    const loaded = withFile(text, (file) => loadConfig(file, {}));
    assert.deepEqual(loaded.kind === 'invalid' ? loaded.errors : [], []);
  });
});
