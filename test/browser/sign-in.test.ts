/** The ways to sign in at the console that need no token: a session of an OIDC provider, and a proxy. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { axeViolations } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

const nobody = { name: null, role: null, method: null, expiresAt: null };

describe('the sign-in of the console without a token', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  test('offers the methods that the gateway offers, and explains why the provider refused', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Operator token').waitFor();
    await answerSession(page, { ...nobody, signInWith: ['token', 'oidc'] });
    await page.goto(`${gateway.adminUrl}/?signInError=no-role`);
    await page.getByText('You have no role at this gateway: ask those who operate it.').waitFor();
    assert.equal(new URL(page.url()).search, '');
    const link = page.getByRole('link', { name: 'Sign in with your organisation' });
    assert.equal(await link.getAttribute('href'), '/oidc/sign-in?page=%2F');
    assert.equal(await page.getByLabel('Operator token').isVisible(), true);
    assert.deepEqual(await axeViolations(page), []);

    await answerSession(page, { ...nobody, signInWith: ['oidc'] });
    await page.reload();
    await link.waitFor();
    assert.equal(await page.getByLabel('Operator token').isVisible(), false);
    assert.equal(await link.evaluate((one) => one === document.activeElement), true);
  });

  test('shows the page at once to an operator whom a trusted proxy has signed in, without a button to sign out', async (t) => {
    const roles = { operate: ['on-call'] };
    const admin = { trustedProxies: ['127.0.0.1'], proxySignIn: { roles } };
    const { gateway } = await startGatewayWithBank(t, { admin });
    const extraHTTPHeaders = { 'X-Forwarded-User': 'ann', 'X-Forwarded-Groups': 'on-call' };
    const page = await pages.open(t, gateway, { extraHTTPHeaders });
    await page.getByRole('button', { name: 'Hold read of sandbox' }).waitFor();
    assert.equal(await page.locator('#operator').innerText(), 'ann');
    assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
  });

  test('uses an existing session at once, and says when it has ended', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const page = await pages.open(t, gateway);
    await page.getByLabel('Operator token').waitFor();
    await answerSession(page, {
      ...nobody,
      name: 'olga',
      role: 'operate',
      method: 'oidc',
      signInWith: ['oidc'],
    });
    let isValid = true;
    await page.route('**/api/events', (route) => {
      const headers = { ...route.request().headers(), authorization: `Bearer ${adminToken}` };
      return isValid
        ? route.continue({ headers })
        : route.fulfill({ status: 401, json: { error: 'a test' } });
    });
    await page.reload();
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    isValid = false;
    await page.reload();
    await page.getByText('Your session has ended: sign in again.').waitFor();
    await page.getByRole('link', { name: 'Sign in with your organisation' }).waitFor();
    assert.equal(await page.getByRole('navigation').count(), 0);
  });
});

/** Answers in place of the gateway, which is not configured for these methods. */
async function answerSession(page: Page, session: object): Promise<void> {
  await page.unroute('**/api/session');
  await page.route('**/api/session', (route) => route.fulfill({ json: session }));
}
