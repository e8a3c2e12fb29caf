/** The console's section about deviations from the standard, its alert, and the acknowledgement of differences by a switch. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { createGuardedEnvironments } from '../../src/contract-guard/guarded-environments.ts';
import type { ContractReport, ReportedDeviation } from '../../src/contract-guard/read-report.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { configOf } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';
import { axeViolations, lowContrastTexts } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';
import { startSampleDashboard } from './sample-dashboard.ts';

const hourMs = 3_600_000;
const { all: guarded } = createGuardedEnvironments(
  configOf({
    environments: {
      active: 'sandbox',
      sandbox: {
        baseUrl: 'https://sandbox.bank.example',
        standardVersion: '1.3.11',
        contract: { requests: 'enforce' },
      },
      production: {
        baseUrl: 'https://bank.example',
        standardVersion: '1.3.6',
        contract: { responses: 'off' },
      },
    },
  }).environments.all,
  () => false,
  () => {},
);
const hashOf = (name: string) => guarded.find((one) => one.name === name)?.own.hash ?? assert.fail(name);

const deviation = (changes: Partial<ReportedDeviation> = {}): ReportedDeviation => ({
  environment: 'sandbox',
  hash: hashOf('sandbox'),
  isOwn: true,
  direction: 'request',
  operation: 'initiatePayment',
  path: 'body/instructedAmount/amount',
  rule: 'pattern',
  level: 'harmful',
  effect: 'refused',
  count: 1_234,
  clients: ['shop', 'till', 'kiosk', 'app', 'web'].map((client, index) => ({ client, count: 1_200 - index })),
  firstMs: Date.now() - 30 * hourMs,
  lastMs: Date.now() - hourMs,
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  ...changes,
});
const usual = deviation({ path: 'headers/*', rule: 'unknown', level: 'usual', effect: 'ignored', count: 3 });
const changeOf = (changes: Partial<ReportedDeviation>) =>
  deviation({
    direction: 'response',
    operation: 'getPaymentStatus',
    level: 'notable',
    effect: 'client-may-fail',
    ...changes,
  });

const checked = (direction: 'request' | 'response', environment = 'sandbox') => ({
  environment,
  hash: hashOf(environment),
  isOwn: true,
  direction,
  count: 5_000,
  firstMs: Date.now() - 30 * hourMs,
  clients: [],
});

const full: Omit<ContractReport, 'fromMs'> = {
  deviations: [
    deviation(),
    deviation({ level: 'notable', effect: 'may-be-refused', count: 2 }),
    deviation({ environment: 'production', hash: 'hash-before', path: 'body/creditorName', count: 1 }),
    changeOf({ path: 'body/transactionStatus', rule: 'enum', changedMs: Date.now() - hourMs }),
    changeOf({ path: 'body/_links', rule: 'type', changedMs: Date.now() - 2 * hourMs }),
    changeOf({
      path: 'status',
      rule: 'status',
      operation: 'getPayment',
      changedMs: Date.now() - 25 * hourMs,
    }),
    usual,
  ],
  messages: [checked('request'), checked('response'), checked('request', 'production')],
  skipped: [
    { environment: 'sandbox', direction: 'response', reason: 'sampled-out', count: 45_000 },
    { environment: 'sandbox', direction: 'request', reason: 'shed', count: 7 },
  ],
};
const nothing = { deviations: [], messages: [], skipped: [] };

describe('the section of the console about the contract', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  async function openReport(
    t: TestContext,
    report: Omit<ContractReport, 'fromMs'>,
    options: BrowserContextOptions = {},
    token = 'token-of-olga',
  ) {
    const dashboard = await startSampleDashboard(t, {
      waiting: { sandbox: 0, production: 0 },
      contract: {
        contractReport: { read: async (fromMs) => ({ fromMs, ...report }) },
        guarded: () => ({ all: guarded }),
        compareTo: async () => undefined,
      },
    });
    const page = await pages.signIn(t, dashboard, options, token);
    const panel = page.getByRole('region', { name: 'Contract', exact: true });
    await panel.getByText(/^updated \d+ s ago$/).waitFor();
    return { page, panel, rows: panel.locator('#contract-rows tr') };
  }

  test('lists the deviations with level, effect, clients and an example, and what was not checked', async (t) => {
    const { page, panel, rows } = await openReport(t, full, { viewport: { width: 1440, height: 900 } });
    assert.equal(await rows.count(), 6, 'rows of one path with different levels are different rows');
    const texts = (await rows.allInnerTexts()).map(oneLine);
    const [first = '', second = ''] = texts;
    const earlier = texts.at(-1) ?? '';
    assert.match(
      first,
      /^1,234 body\/instructedAmount\/amount pattern harmful refused initiatePayment sandbox shop \(1,200\), till \(1,199\), kiosk \(1,198\), 2 more .* first .* Example$/,
    );
    assert.match(second, /notable may-be-refused/);
    assert.match(earlier, /pattern, of an earlier contract/, 'behind those of the contract in effect');
    const coverage = oneLine(await panel.locator('#contract-coverage').innerText());
    assert.match(
      coverage,
      /sandbox 1\.3\.11 Requests enforced, 5,000 checked since .*, 7 not checked: the gateway was busy/,
    );
    assert.match(
      coverage,
      /Answers reported, 5,000 checked since .*, 45,000 not checked: not in the sample of 10 %/,
    );
    assert.match(coverage, /production 1\.3\.6 Requests reported, .* Answers not checked \(off\)/);
    assert.deepEqual(await axeViolations(page, '#contract'), []);

    await rows
      .first()
      .getByRole('button', { name: /^Example: .* 99391c7e/ })
      .click();
    assert.equal(await page.locator('#request-id').inputValue(), deviation().requestId);
  });

  test('filters by level and direction, and says what a filter hides', async (t) => {
    const { panel, rows } = await openReport(t, { ...full, deviations: [usual] });
    await panel
      .getByText(
        'No harmful or notable deviation in the messages that were checked. The filter hides 1 deviation.',
      )
      .waitFor();
    assert.equal(await rows.count(), 0);
    await panel.getByLabel('Level').selectOption('usual');
    assert.match(oneLine(await rows.innerText()), /headers\/\* unknown usual ignored/);
    await panel.getByLabel('Messages').selectOption('response');
    assert.equal(await rows.count(), 0);
  });

  test('never shows that nothing is wrong where nothing was checked', async (t) => {
    const { page, panel } = await openReport(t, nothing);
    await panel.getByText('No message was checked in this period: nothing is known.').waitFor();
    assert.equal(await panel.getByRole('table').isVisible(), false);
    assert.deepEqual(await axeViolations(page, '#contract'), []);
  });

  test('says how many of many deviations are not shown', async (t) => {
    const deviations = Array.from({ length: 1_100 }, (_, index) => deviation({ path: `body/field${index}` }));
    const { panel, rows } = await openReport(t, { ...full, deviations });
    await panel.getByText(/^The worst 200 of 1,000 deviations\. 100 deviations more: /).waitFor();
    assert.equal(await rows.count(), 200);
  });

  test('shows a reader the same, and fits a narrow dark screen', async (t) => {
    const options = { colorScheme: 'dark', viewport: { width: 360, height: 740 } } as const;
    const { page, rows } = await openReport(t, full, options, 'token-of-rita');
    assert.equal(await rows.count(), 6);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    assert.deepEqual(await axeViolations(page, '#contract'), []);
    assert.deepEqual(await lowContrastTexts(page), []);
  });
});

describe('a switch to an environment that would treat requests differently', {
  skip: skipWithoutChromium,
}, () => {
  const pages = usePages();

  /** Opens the dialog, and waits for the result of the pre-flight. */
  async function openDialog(page: Page, environment: string) {
    await page
      .getByRole('article', { name: environment })
      .getByRole('button', { name: 'Make active…' })
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Pre-flight check passed.').waitFor();
    await dialog.getByLabel('Reason').fill('go-live');
    if (environment === 'production') await dialog.getByLabel('Type production to confirm').fill(environment);
    return {
      dialog,
      checkbox: dialog.getByLabel(/Switch although requests would be refused/),
      submit: () => dialog.getByRole('button', { name: `Switch to ${environment}` }).click(),
    };
  }

  const isActive = (page: Page, environment: string) =>
    page.getByRole('article', { name: environment }).getByText('active', { exact: true }).waitFor();

  test('lists them, waits for the checkbox, records it, and does not ask for the way back', async (t) => {
    const { gateway } = await startTwoEnvironments(t, { clients: [] });
    const page = await pages.signIn(t, gateway);
    const { dialog, checkbox, submit } = await openDialog(page, 'production');
    await dialog.getByText('No request in sandbox was judged by the contract of production.').waitFor();
    assert.equal(await checkbox.isVisible(), false, 'nothing is known yet');

    // The standard 1.3.6 has no execution date for single payments.
    const body = JSON.stringify({ ...JSON.parse(initiation.body), requestedExecutionDate: '2031-01-15' });
    assert.equal((await call(gateway.url, { ...initiation, body })).status, 201);
    await until(5_000, 'the comparison', async () => {
      const compared = await readAdminApi(gateway, '/api/contract/compare?from=sandbox&to=production');
      return compared.requests === 1;
    });
    await submit();
    await dialog
      .getByRole('alert')
      .getByText(/^Not switched: .* must be acknowledged/)
      .waitFor();
    const item = dialog.getByRole('listitem').filter({ hasText: 'body/requestedExecutionDate' });
    assert.match(
      oneLine(await item.innerText()),
      /executed-at-once: .* not-in-version, initiatePayment, 1 time by anonymous/,
    );
    assert.equal(await checkbox.evaluate((one) => one === document.activeElement), true);
    assert.equal(
      await page.getByRole('article', { name: 'sandbox' }).getByText('active', { exact: true }).isVisible(),
      true,
    );
    assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);

    await page.keyboard.press('Space');
    await submit();
    await isActive(page, 'production');
    for (const recorded of ['1 difference not acknowledged', '1 difference acknowledged'])
      await page.locator('#records').getByText(recorded).waitFor();

    const back = await openDialog(page, 'sandbox');
    assert.equal(await back.checkbox.isVisible(), false);
    await back.submit();
    await isActive(page, 'sandbox');
    const again = await openDialog(page, 'production');
    assert.equal(await again.checkbox.isVisible(), false, 'it was active within the last hour');
    await again.submit();
    await isActive(page, 'production');
  });

  test('shows no checkbox if nothing differs, and fits a narrow dark screen if much does', async (t) => {
    const { gateway } = await startTwoEnvironments(t, { clients: [] });
    const options = { colorScheme: 'dark', viewport: { width: 360, height: 740 } } as const;
    const page = await pages.signIn(t, gateway, options);
    const difference = {
      operation: 'initiatePayment',
      path: 'body/creditorName/a/rather/long/path/for/a/narrow/screen',
      rule: 'max-length',
      level: 'harmful',
      effect: 'refused',
      count: 2,
      clients: [{ client: 'shop', count: 2 }],
      lastSeen: new Date().toISOString(),
      xRequestId: deviation().requestId,
      inBoth: false,
      mustAcknowledge: true,
    };
    let differences: readonly (typeof difference)[] = [];
    const comparison = () => ({
      from: 'sandbox',
      to: 'production',
      requests: 12,
      since: '2026-01-01T00:00:00.000Z',
      judgedSince: '2026-01-02T00:00:00.000Z',
      skipped: [{ reason: 'shed', count: 3 }],
      complete: false,
      differences,
    });
    const steps = [{ step: 'answer', ok: true, detail: 'status 200' }];
    await page.route('**/preflight', (route) =>
      route.fulfill({ json: { ok: true, steps, contract: comparison() } }),
    );
    const same = await openDialog(page, 'production');
    await same.dialog.getByText('No difference was found in the requests that were judged.').waitFor();
    await same.dialog
      .getByText(/^12 requests in sandbox were judged .* Not judged before .* 3 not judged \(shed\)\.$/)
      .waitFor();
    assert.equal(await same.checkbox.isVisible(), false);
    await page.keyboard.press('Escape');
    await same.dialog.waitFor({ state: 'detached' });

    const alsoHere = { ...difference, inBoth: true, mustAcknowledge: false };
    differences = [alsoHere, ...Array.from({ length: 13 }, () => difference)];
    const many = await openDialog(page, 'production');
    await many.checkbox.waitFor();
    await many.dialog.getByText('4 more differences: penstock contract compare sandbox production').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    await many.dialog
      .getByText(/^max-length, initiatePayment \(also in sandbox\), 2 times by shop$/)
      .waitFor();
    assert.equal(await many.dialog.evaluate((one) => one.scrollWidth <= one.clientWidth), true);
    assert.deepEqual(await axeViolations(page, 'dialog[open]'), []);
    assert.deepEqual(await lowContrastTexts(page), []);
  });
});

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
