/** What the console shows by itself: the last minutes at once, then every second; and how it bears what goes wrong. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ask } from '../kit/circuits.ts';
import { startLine } from '../kit/gateway.ts';
import { createAuthority, inDays } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { startServed } from '../kit/served.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, startBrowser } from './browser.ts';
import { startSampleDashboard } from './sample-dashboard.ts';

describe('the console', { skip: skipWithoutChromium }, () => {
  const pages = startBrowser();

  test('names the circuits that open, why, and when the bank is asked again', async (t) => {
    const sides = await startTwoEnvironments(t, {
      clients: [],
      circuit: { minimumCalls: 3, openFor: '60s' },
    });
    const page = await pages.signIn(t, sides.gateway);
    await page.getByRole('heading', { name: 'All is well' }).waitFor();
    sides.sandbox.injectFault({ name: 'status', status: 503 });
    for (const lane of ['write', 'read'] as const)
      for (let calls = 0; calls < 3; calls++) await ask(sides.gateway, lane);
    await page
      .getByText(/sandbox: write and read are stopped, 3 of 3 calls failed\. The bank is asked again at/)
      .waitFor();
    const rows = page.getByRole('article', { name: 'sandbox' }).getByRole('row');
    assert.match(await rows.nth(0).innerText(), /write[\s\S]*■ open[\s\S]*asked again at/);
    assert.match(await rows.nth(2).innerText(), /status[\s\S]*● closed/);
    await until(5_000, 'the title tells', async () => /^\(\d\) Penstock$/.test(await page.title()));
    assert.ok((await page.locator('.strip rect[data-state="open"]').count()) >= 2);
  });

  test('draws the last five minutes at once, what comes each second, and the values under the pointer', async (t) => {
    const shown = await startSampleDashboard(t);
    const page = await pages.signIn(t, shown, {}, shown.token);
    const requests = page.getByRole('img', { name: /^Requests: all 7\/s, failed at the bank 1\/s/ });
    await requests.waitFor();
    assert.equal((await requests.locator('path').first().getAttribute('d'))?.split('L').length, 300);
    await page
      .getByRole('img', { name: /^Time to answer: half of them \(p50\) 40 ms, 99 of 100 \(p99\) 1\.2 s/ })
      .waitFor();
    await page.getByRole('img', { name: /^Status reads answered from: cache 4\/s/ }).waitFor();
    shown.addSecond({ requests: 9, p99Ms: null });
    await page.getByRole('img', { name: /^Requests: all 9\/s/ }).waitFor();
    await page.getByRole('img', { name: /p99\) –$/ }).waitFor();
    const plot = page.locator('.plot svg').first();
    const box = await plot.boundingBox();
    await plot.hover({ position: { x: (box?.width ?? 0) / 2, y: 20 } });
    await page.getByText(/^1\d\d s ago$/).waitFor();
    await page.mouse.move(0, 0);
    assert.equal(await page.getByText(/s ago$/).count(), 0);
  });

  test('says that the connection is lost, and comes back by itself, to an instance that was restarted', async (t) => {
    const admin = { port: await freePort() };
    const sections = { environments: { sandbox: { baseUrl: 'http://127.0.0.1:9' } }, admin };
    const first = await startServed(t, sections);
    const page = await pages.signIn(t, { adminUrl: `http://127.0.0.1:${admin.port}` });
    first.command.kill('SIGTERM');
    await page.getByText('This instance is stopping. Trying again…').waitFor();
    await first.command.exitCode();
    await page.getByText('The instance does not answer. Trying again…').waitFor();
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    await startServed(t, sections);
    await page.getByText(/The instance was restarted: it runs since/).waitFor();
    await page.getByText(/^Live, /).waitFor();
  });

  test('says that this instance takes no requests, and why', async (t) => {
    const shown = await startSampleDashboard(t, {
      readiness: { ready: false, reasons: ['the shared state cannot be reached'] },
    });
    const page = await pages.signIn(t, shown, {}, shown.token);
    await page.getByText('The shared state cannot be reached.').waitFor();
    await page.getByText('Which environment is active is not known: new payments are refused.').waitFor();
    await page.getByText(/14 % of the last minute's requests failed at the bank: 60 of 420/).waitFor();
    await page.getByRole('heading', { name: '3 things need attention' }).waitFor();
  });

  test('counts the days that a certificate has left', async (t) => {
    const shown = await startSampleDashboard(t, { daysLeft: 6 });
    const page = await pages.signIn(t, shown, {}, shown.token);
    await page.getByText('sandbox: the certificate ends in 6 days.').waitFor();
    await page.getByText('6 days left').waitFor();
  });

  test('counts the days of the certificate at the TPP systems’ door, too, and of each but once', async (t) => {
    const door = createAuthority(t).issue('door', { until: inDays(5.5) });
    const { gateway } = await startLine(t, {
      listen: { tls: { certFile: door.certFile, keyFile: door.keyFile } },
    });
    const page = await pages.signIn(t, gateway);
    await page.getByText('TPP systems’ door: the certificate ends in 5 days.').waitFor();
    await page.getByRole('heading', { name: '1 thing needs attention' }).waitFor();
    assert.equal(await page.locator('#troubles li', { hasText: 'certificate' }).count(), 1);
  });

  test('draws what waits, whatever the environments are called', async (t) => {
    const long = `a-${'very-'.repeat(10)}long-one`;
    const { gateway } = await startTwoEnvironments(t, {
      clients: [],
      environments: {
        active: 'at',
        at: { baseUrl: 'http://127.0.0.1:9' },
        [long]: { baseUrl: 'http://127.0.0.1:9/b' },
      },
    });
    const page = await pages.signIn(t, gateway);
    const waiting = page.getByRole('img', { name: `Waiting for a turn: at 0, ${long} 0` });
    await waiting.waitFor();
    await until(5_000, 'both have a line', async () =>
      (
        await waiting.locator('path.line').evaluateAll((all) => all.map((one) => one.getAttribute('d') ?? ''))
      ).every((line) => /^M\d/.test(line) && !line.includes('-')),
    );
    const overhanging = await page.locator('.card :is(select, input, dt, .name, h3)').evaluateAll((all) =>
      all.flatMap((one) => {
        const card = one.closest('.card')?.getBoundingClientRect();
        return card && one.getBoundingClientRect().right > card.right ? [one.outerHTML] : [];
      }),
    );
    assert.deepEqual(overhanging, []);
  });

  test('moves nothing on the page while figures come in', async (t) => {
    const { gateway } = await startLine(t);
    const page = await pages.signIn(t, gateway);
    const late = Promise.withResolvers<void>();
    await page.route('**/api/in-doubt', (route) => late.promise.then(() => route.continue()));
    await page.reload();
    await page.getByText(/^Live, /).waitFor();
    await page.evaluate(async () => {
      // What it opens with is painted when the frame after the next one begins.
      for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
      const shifts: number[] = [];
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.push('value' in entry ? Number(entry.value) : 0);
      }).observe({ type: 'layout-shift' });
      Object.assign(window, { shifts });
    });
    late.resolve();
    await page.getByText('Nothing is in doubt.').waitFor();
    const said = () => page.locator('#link').innerText();
    const times = new Set<string>();
    for (let calls = 0; calls < 20; calls++) await ask(gateway, 'read');
    await until(15_000, 'four seconds went by', async () => times.add(await said()).size > 4);
    const shifts = await page.evaluate(() => ('shifts' in window ? window.shifts : undefined));
    assert.deepEqual(shifts, []);
  });
});
