/** What the console shows of the stored requests of all instances: the search, the most frequent errors, the history. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { startLocalPaymentFleet } from '../kit/payment-fleet.ts';
import { skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { axeViolations } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

describe('the stored requests in the console', {
  skip: skipWithoutChromium || skipWithoutRedisServer,
}, () => {
  const pages = usePages();

  test('are found by X-Request-ID, payment and error on the page of another instance, with the decisions', async (t) => {
    const redis = await startRedis(t);
    const { instances, bank } = await startLocalPaymentFleet(t, redis.url, 2);
    const [first = assert.fail(), second = assert.fail()] = instances;
    const requestId = randomUUID();
    const one = { ...initiation, headers: [['X-Request-ID', requestId] as const, ...initiation.headers] };
    let paid = await call(second.url, one);
    await until(20_000, 'the second instance executes payments', async () => {
      if (paid.status !== 201) paid = await call(second.url, one);
      return paid.status === 201;
    });
    assert.equal(
      (await call(second.url, { method: 'GET', path: `${transfersPath}/no-such/status` })).status,
      404,
    );
    const page = await pages.signIn(t, first);
    const search = page.getByRole('region', { name: 'Why was my call refused?', exact: true });
    const submit = search.getByRole('button', { name: 'Search' });
    const results = search.getByRole('article');

    const searchFor = async (label: string, value: string) => {
      await search.getByLabel(label, { exact: true }).fill(value);
      await until(20_000, `a request with ${label} is found`, async () => {
        await submit.click();
        await search
          .getByRole('status')
          .getByText(/^(No |\d+ request)/)
          .waitFor();
        return (await results.count()) > 0;
      });
      const text = await results.first().innerText();
      await search.getByLabel(label, { exact: true }).fill('');
      return text;
    };
    const byId = await searchFor('X-Request-ID', requestId);
    for (const part of [/201 completed/, /initiatePayment/, /Instance/, new RegExp(requestId)])
      assert.match(byId, part);
    assert.match(await searchFor('Payment id', String(jsonOf(paid).paymentId)), /initiatePayment/);
    assert.match(await searchFor('Error or status', '404'), /404 RESOURCE_UNKNOWN/);
    assert.deepEqual(await axeViolations(page), []);
    assert.ok(bank.payments.length >= 1);
  });

  test('are counted by error, with an example, and drawn over an hour', async (t) => {
    const redis = await startRedis(t);
    const { instances } = await startLocalPaymentFleet(t, redis.url, 2);
    const [first = assert.fail(), second = assert.fail()] = instances;
    const read = { method: 'GET', path: `${transfersPath}/no-such/status` };
    for (let calls = 0; calls < 3; calls++) await call(second.url, read);
    await call(first.url, read);
    const page = await pages.signIn(t, first);
    const errors = page.getByRole('region', { name: 'Top errors', exact: true });
    const row = errors.getByRole('row', { name: /bank: 404/ });
    await row.getByText('4', { exact: true }).waitFor({ timeout: 30_000 });
    await row.getByRole('button', { name: /^Example: / }).click();
    await page
      .locator('#search-results')
      .getByText(/404 RESOURCE_UNKNOWN/)
      .waitFor();
    assert.match(await page.locator('#alerts-title').innerText(), /^Customers can pay/);

    await page.getByLabel('Period', { exact: true }).first().selectOption('1 hour');
    await page.getByRole('img', { name: /^Requests: all [\d.]+\/s/ }).waitFor();
    assert.equal(await page.locator('.chart', { hasText: 'Queued calls' }).isVisible(), false);
    await page.getByText('from the stored history').waitFor();
    await page.getByLabel('until').fill('2020-01-01T00:00');
    await page.getByRole('img', { name: /^Requests: (no data yet|all (–|0\/s))/ }).waitFor();
    await page.getByLabel('Period', { exact: true }).first().selectOption('last 5 minutes');
    await page.locator('.chart', { hasText: 'Queued calls' }).waitFor();
  });
});
