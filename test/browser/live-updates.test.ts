/** What the console shows without interaction: alerts, charts, connection state, and updates every second. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { Locator } from 'playwright-core';
import { call } from '../kit/call.ts';
import { ask } from '../kit/circuits.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { createAuthority, inDays } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, usePages } from './browser.ts';
import { startSampleDashboard } from './sample-dashboard.ts';

describe('the live updates of the console', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('name the circuits that open, the reason, and the time of the next probe', async (t) => {
    const { gateway, sandbox } = await startTwoEnvironments(t, {
      clients: [],
      circuit: { minimumCalls: 3, openFor: '60s' },
    });
    const page = await pages.signIn(t, gateway);
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor();
    sandbox.injectFault({ name: 'status', status: 503 });
    for (const lane of ['write', 'read'] as const)
      for (let calls = 0; calls < 3; calls++) await ask(gateway, lane);
    for (const lane of ['write', 'read'])
      await page
        .getByText(
          new RegExp(
            `The ${lane} circuit of sandbox is open: 3 of 3 calls failed\\. First, at .*: the bank answered 503`,
          ),
        )
        .waitFor();
    const rows = page.getByRole('article', { name: 'sandbox' }).getByRole('row');
    assert.match(await rows.nth(0).innerText(), /write[\s\S]*■ open[\s\S]*next probe at/);
    assert.match(await rows.nth(2).innerText(), /status[\s\S]*● closed/);
    await until(5_000, 'the title counts the alerts', async () =>
      /^\(\d\) Penstock$/.test(await page.title()),
    );
    assert.ok((await page.locator('.timeline rect[data-state="open"]').count()) >= 2);
  });

  test('name the tenant whose circuit opens while the bank works for another one', async (t) => {
    const { gateway, sandbox, send, pay } = await startTwoEnvironments(t, {
      circuit: { minimumCalls: 3, openFor: '60s' },
    });
    await pay('rival');
    sandbox.injectFault({ name: 'status', status: 500 });
    for (let calls = 0; calls < 3; calls++) await send('shop', initiation);
    const page = await pages.signIn(t, gateway);
    await page.getByText('The write circuit of sandbox is open for shop, closed for the others.').waitFor();
    await page.getByText('calls are sent; except for shop: open').waitFor();
  });

  test('name the first failed call of an open circuit, explain it, and link to Grafana', async (t) => {
    const { gateway, sandbox } = await startTwoEnvironments(t, {
      clients: [],
      circuit: { minimumCalls: 3, openFor: '60s' },
      admin: {
        links: {
          grafana: 'https://grafana.example/d/penstock?var-environment={environment}',
        },
      },
    });
    sandbox.injectFault({ name: 'status', status: 503 });
    const requestId = randomUUID();
    const first = { ...initiation, headers: [['X-Request-ID', requestId] as const, ...initiation.headers] };
    await call(gateway.url, first);
    for (let calls = 0; calls < 2; calls++) await ask(gateway, 'write');
    const page = await pages.signIn(t, gateway);
    const alert = page.getByRole('listitem').filter({ hasText: 'The write circuit of sandbox is open' });
    await alert.getByText(`the bank answered 503 (X-Request-ID ${requestId}).`).waitFor();
    const address = (name: string) => alert.getByRole('link', { name }).getAttribute('href');
    assert.equal(await address('Grafana'), 'https://grafana.example/d/penstock?var-environment=sandbox');
    assert.match((await address('Guide')) ?? '', /\/docs\/operations\/circuits\.md$/);
    const card = page.getByRole('article', { name: 'sandbox' });
    await card.getByText(/First cause, at .*: initiatePayment of anonymous, the bank answered 503/).waitFor();
    await card.getByRole('button', { name: 'Why? Explain the first cause of write of sandbox' }).click();
    await page.locator('#search-results').getByText(requestId).waitFor();
  });

  test('draw the last five minutes at once, then every second, and show the values under the pointer', async (t) => {
    const dashboard = await startSampleDashboard(t);
    const page = await pages.signIn(t, dashboard, {}, dashboard.token);
    const requests = page.getByRole('img', { name: /^Requests: all 7\/s, failed at the bank 1\/s/ });
    await requests.waitFor();
    for (const color of ['accent', 'red'])
      await until(
        5_000,
        `the ${color} line is drawn from end to end`,
        async () => (await drawnShare(page.locator('.chart').first(), color)) > 0.95,
      );
    await page.getByRole('img', { name: /^Latency: p50 40 ms, p99 1\.2 s/ }).waitFor();
    await page.getByRole('img', { name: /^Status reads by source: cache 4\/s/ }).waitFor();
    dashboard.addSecond({ requests: 9, p99Ms: null });
    await page.getByRole('img', { name: /^Requests: all 9\/s/ }).waitFor();
    await page.getByRole('img', { name: /p99 –$/ }).waitFor();
    const plot = page.locator('.plot').first();
    const box = await plot.boundingBox();
    await plot.hover({ position: { x: (box?.width ?? 0) / 2, y: 20 } });
    await page.getByText(/^1\d\d s ago$/).waitFor();
    await page.locator('.chart').first().getByText('7/s', { exact: true }).waitFor();
    await page.mouse.move(0, 0);
    await until(
      5_000,
      'the newest values are back',
      async () =>
        (await page
          .locator('#charts')
          .getByText(/s ago$/)
          .count()) === 0,
    );
  });

  test('show in the timeline, once, which settings a reload has changed', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } };
    await gateway.reload({ environments, deadlines: { write: '34s' } });
    const page = await pages.signIn(t, gateway);
    const entry = page.locator('#timeline-entries li[data-kind="reload"]');
    await entry.waitFor();
    assert.equal((await entry.innerText()).match(/deadlines\.write/g)?.length, 1);
    assert.doesNotMatch(await entry.innerText(), /not set/);
  });

  test('redraw the charts in the colours of the theme when the system changes it', async (t) => {
    const dashboard = await startSampleDashboard(t);
    const page = await pages.signIn(t, dashboard, { colorScheme: 'light' }, dashboard.token);
    const chart = page.locator('.chart').first();
    const isDrawn = () => drawnShare(chart, 'accent').then((share) => share > 0.95);
    await until(5_000, 'the line has the colour of the light theme', isDrawn);
    const light = await swatchColor(chart, 'accent');
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.notEqual(await swatchColor(chart, 'accent'), light);
    await until(5_000, 'the line has the colour of the dark theme', isDrawn);
  });

  test('report a lost connection, reconnect, and report that the instance was restarted', async (t) => {
    const admin = { port: await freePort() };
    const sections = { environments: { sandbox: { baseUrl: 'http://127.0.0.1:9' } }, admin };
    const first = await startGatewayProcess(t, sections);
    const page = await pages.signIn(t, { adminUrl: `http://127.0.0.1:${admin.port}` });
    first.command.kill('SIGTERM');
    await page.getByText('This instance is stopping. Reconnecting…').waitFor();
    await first.command.exitCode();
    await page.getByText('The instance is not responding. Reconnecting…').waitFor();
    await page.getByText(/^No connection to the gateway: the page shows the state of /).waitFor();
    assert.match(await page.locator('#alerts-title').innerText(), /^No connection to the gateway: \d/);
    await page
      .getByText(/^\d+ s old, from /)
      .first()
      .waitFor();
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    await startGatewayProcess(t, sections);
    await page.getByText(/The instance was restarted at/).waitFor();
    await page.getByText(/^Live, /).waitFor();
  });

  test('show the alerts of the gateway with their time, their action and a link to their section', async (t) => {
    const since = new Date(Date.now() - 130_000).toISOString();
    const of = (id: string, severity: 'critical' | 'warning' | 'info', text: string) => ({
      ...{
        id,
        severity,
        text,
        since,
        action: `Do \`something\` about <b>${id}.`,
        guide: 'https://docs.example/guide',
      },
    });
    const dashboard = await startSampleDashboard(t, {
      canPay: 'no',
      alerts: [
        of('initiations-unauthorised', 'critical', 'The bank refuses payments with 401.'),
        of('webhook-endpoint-fails', 'warning', 'https://one.example accepts no messages.'),
        of('webhook-endpoint-fails', 'warning', 'https://two.example accepts no messages.'),
        of('database-in-memory', 'info', 'The database is in memory.'),
      ],
    });
    const page = await pages.signIn(t, dashboard, {}, dashboard.token);
    await page.getByRole('heading', { name: 'Customers cannot pay: 3 active alerts, 1 note' }).waitFor();
    const items = page.locator('#alert-list li');
    assert.equal(await items.count(), 4);
    const [first, second] = [items.first(), items.nth(1)];
    assert.match(
      await first.innerText(),
      /^■[\s\S]*The bank refuses payments with 401\.\s+Guide[\s\S]*Since .* \(2 min\)\./,
    );
    assert.match(await first.innerText(), /Do something about <b>initiations-unauthorised\.$/);
    assert.deepEqual(await first.locator('code').allInnerTexts(), ['something']);
    assert.equal(await first.getByRole('link').first().getAttribute('href'), '#errors');
    assert.equal(await second.getByRole('link').first().getAttribute('href'), '#notifications');
    assert.match(await items.last().innerText(), /^i[\s\S]*The database is in memory\./);
  });

  test('show how many days an environment’s certificate is valid', async (t) => {
    const dashboard = await startSampleDashboard(t, { daysLeft: 6 });
    const page = await pages.signIn(t, dashboard, {}, dashboard.token);
    await page.getByText('6 days left').waitFor();
  });

  test('show once that the certificate of the public listener expires soon', async (t) => {
    const { certFile, keyFile } = createAuthority(t).issue('listener', { until: inDays(5.5) });
    const { gateway } = await startGatewayWithBank(t, { listen: { tls: { certFile, keyFile } } });
    const page = await pages.signIn(t, gateway);
    await page
      .getByText(/^The TLS certificate of the public listener \(.*\) expires in 5 days, on /)
      .waitFor();
    await page.getByRole('heading', { name: '1 active alert' }).waitFor();
    assert.equal(await page.locator('#alert-list li', { hasText: 'certificate' }).count(), 1);
  });

  test('draw the waiting calls of environments with any name, inside their cards', async (t) => {
    const longName = `a-${'very-'.repeat(10)}long-one`;
    const dashboard = await startSampleDashboard(t, { waiting: { at: 3, [longName]: 6 } });
    const page = await pages.signIn(t, dashboard, {}, dashboard.token);
    await page.getByRole('img', { name: `Queued calls: at 3, ${longName} 6` }).waitFor();
    const chart = page.locator('.chart', { hasText: 'Queued calls' });
    for (const color of ['accent', 'violet'])
      await until(10_000, `the ${color} line is drawn`, async () => (await drawnShare(chart, color)) > 0);
    const overflowing = await page.locator('.card :is(select, input, dt, .name, h3)').evaluateAll((all) =>
      all.flatMap((one) => {
        const card = one.closest('.card')?.getBoundingClientRect();
        return card && one.getBoundingClientRect().right > card.right ? [one.outerHTML] : [];
      }),
    );
    assert.deepEqual(overflowing, []);
  });

  test('do not shift the layout of the page', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.signIn(t, gateway);
    await page.getByRole('heading', { name: 'No active alerts' }).waitFor(); // the instance has just started
    const inDoubtDelay = Promise.withResolvers<void>();
    await page.route('**/api/in-doubt', (route) => inDoubtDelay.promise.then(() => route.continue()));
    await page.reload();
    await page.getByText(/^Live, /).waitFor();
    await page.evaluate(async () => {
      // The first content is painted when the frame after the next one begins.
      for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
      const shifts: number[] = [];
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.push('value' in entry ? Number(entry.value) : 0);
      }).observe({ type: 'layout-shift' });
      Object.assign(window, { shifts });
    });
    inDoubtDelay.resolve();
    await page.getByText('No payments in doubt.').waitFor();
    const connection = () => page.locator('#connection').innerText();
    const times = new Set<string>();
    for (let calls = 0; calls < 20; calls++) await ask(gateway, 'read');
    await until(15_000, 'four seconds have passed', async () => times.add(await connection()).size > 4);
    const shifts = await page.evaluate(() => ('shifts' in window ? window.shifts : undefined));
    assert.deepEqual(shifts, []);
  });
});

const swatchColor = (chart: Locator, color: string) =>
  chart.locator(`.swatch.${color}`).evaluate((swatch) => getComputedStyle(swatch).backgroundColor);

/** @returns the share of the pixel columns of the plot that contain the colour of a series, 0 to 1 */
const drawnShare = (chart: Locator, color: string): Promise<number> =>
  chart.evaluate((figure, name) => {
    const canvas = figure.querySelector('canvas');
    const plot = figure.querySelector('.u-over');
    const swatch = figure.querySelector(`.swatch.${name}`);
    const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    if (!canvas || !plot || !swatch || !copy) return 0;
    [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
    copy.drawImage(canvas, 0, 0);
    const wanted = getComputedStyle(swatch).backgroundColor.match(/\d+/g)?.map(Number) ?? [];
    const width = Math.round(plot.getBoundingClientRect().width * devicePixelRatio);
    const { data } = copy.getImageData(0, 0, width, canvas.height);
    const columns = new Set<number>();
    for (let pixel = 0; pixel < data.length / 4; pixel++) {
      const isClose = wanted.every((part, index) => Math.abs(part - (data[pixel * 4 + index] ?? 0)) < 16);
      if (isClose && (data[pixel * 4 + 3] ?? 0) > 128) columns.add(pixel % width);
    }
    return columns.size / width;
  }, color);
