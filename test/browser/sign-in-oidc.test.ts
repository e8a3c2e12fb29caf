/** Sign-in with OIDC in a browser that enforces SameSite: the provider (localhost) is another site than the console (127.0.0.1). */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startOidcGateway } from '../kit/oidc-gateway.ts';
import { listen } from '../kit/ports.ts';
import { until } from '../kit/within.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

const pages = usePages();

/** The name in the answer of `/api/session` to a request of the page itself. */
const nameIn = (page: Page) =>
  page.evaluate(async () => (await (await fetch('/api/session')).json()).name as string | null);

describe('a browser', { skip: skipWithoutChromium }, () => {
  test('is signed in after the provider has sent it back, and foreign pages cannot use its session', async (t) => {
    const { gateway, url } = await startOidcGateway(t);

    const page = await pages.open(t, gateway);
    assert.equal(await nameIn(page), null);
    const signIn = page.getByRole('link', { name: 'Sign in with your organisation' });
    await signIn.click();
    await page.waitForURL(`${url}/`);
    assert.equal(await nameIn(page), 'ann');
    await page.getByRole('button', { name: 'Hold read of sandbox' }).waitFor();
    assert.equal(await page.locator('#operator').innerText(), 'ann');
    const cookies = await page.context().cookies(url);
    assert.deepEqual(
      cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]),
      [
        ['penstock-sign-in', true, 'Lax'],
        ['penstock-session', true, 'Strict'],
      ],
    );
    assert.equal(await page.evaluate(() => document.cookie), '');

    const foreign = createServer((_request, response) => void response.end('<title>foreign</title>'));
    const foreignPort = await listen(foreign);
    t.after(() => {
      foreign.close();
      foreign.closeAllConnections();
    });
    const attack = await page.context().newPage();
    // Another site, and the same site with another port: the browser sends the cookie with requests of the second one.
    for (const origin of [`http://localhost:${foreignPort}`, `http://127.0.0.1:${foreignPort}`]) {
      await attack.goto(origin);
      await attack.evaluate(async (target) => {
        const options = { method: 'POST', mode: 'no-cors', credentials: 'include' } as const;
        await fetch(`${target}/api/environments/sandbox/preflight`, options);
        await fetch(`${target}/api/session`, { ...options, method: 'DELETE' }).catch(() => {});
      }, url);
    }
    assert.equal(await nameIn(page), 'ann');
    const refused = () => gateway.logLines.filter((line) => line.includes('another web page'));
    assert.ok(refused().length >= 1, 'the request of the other port had the cookie');

    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn.waitFor();
    await until(10_000, 'the session has ended', async () => (await nameIn(page)) === null);
    await page.reload();
    await signIn.waitFor();
  });

  test('is sent back to the page of payments on which the sign-in has begun', async (t) => {
    const { gateway, url } = await startOidcGateway(t);
    const page = await pages.open(t, gateway);
    await page.goto(`${url}/payments?tenant=shop`);
    await page.getByRole('link', { name: 'Sign in with your organisation' }).click();
    await page.waitForURL(`${url}/payments?tenant=shop`);
    await page.locator('#operator', { hasText: 'ann' }).waitFor();
  });
});
