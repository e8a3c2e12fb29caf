/** Operators who sign in at an OpenID Connect provider: a real one, oidc-provider, that runs in this process. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connectPostgres } from '../../src/store/postgres.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { readEvents } from '../kit/event-stream.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { adminToken, startGateway } from '../kit/gateway.ts';
import { ann, startOidcGateway, untilProviderKnown } from '../kit/oidc-gateway.ts';
import { oidcClient } from '../kit/oidc-provider.ts';
import { createAuthority } from '../kit/openssl.ts';
import { createOperatorBrowser, type OperatorBrowser } from '../kit/operator-browser.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { until } from '../kit/within.ts';

const sessionOf = async (browser: OperatorBrowser, url: string) =>
  JSON.parse((await browser.send('GET', `${url}/api/session`)).text);

/** Follows the sign-in up to the callback, and does not open it. */
async function callbackOf(browser: OperatorBrowser, url: string): Promise<string> {
  let next = `${url}/oidc/sign-in`;
  while (!next.startsWith(`${url}/oidc/callback`)) {
    const { headers } = await browser.send('GET', next);
    next = new URL(headers.location ?? assert.fail(next), next).href;
  }
  return next;
}

describe('an operator who signs in at the provider', () => {
  test('gets a session with the name and the role of the claims, and is named in the audit log', async (t) => {
    const { provider, gateway, url } = await startOidcGateway(t, { admin: { sessionTtl: '30min' } });
    const browser = createOperatorBrowser();
    const page = await browser.open(`${url}/oidc/sign-in`);
    assert.deepEqual([page.url, page.status], [`${url}/`, 200]);
    const { expiresAt, ...session } = await sessionOf(browser, url);
    assert.deepEqual(session, {
      name: 'ann',
      role: 'operate',
      method: 'oidc',
      signInWith: ['token', 'oidc'],
    });
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 1_800_000) < 60_000);
    assert.equal(provider.exchanges(), 1);

    const cookies = browser.received.filter((cookie) => cookie.startsWith('penstock-'));
    const [attempt = '', own = ''] = cookies;
    assert.equal(cookies.length, 2);
    assert.match(attempt, /^penstock-sign-in=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
    assert.match(own, /^penstock-session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);

    const body = { environment: 'sandbox', reason: 'a test' };
    const headers = { Origin: url };
    const switched = await browser.send('PUT', `${url}/api/environments/active`, { headers, body });
    assert.equal(switched.status, 200, switched.text);
    const audit = JSON.stringify(await readAdminApi(gateway, '/api/audit'));
    assert.match(audit, /"who":"ann","action":"switch environment"/);
    assert.match(
      audit,
      /"who":"ann","action":"sign in","outcome":"done","details":\{"method":"oidc","role":"operate",.*"subject":"subject-1"\}/,
    );
    assert.ok(!gateway.logLines.some((line) => line.includes(oidcClient.secret)));
  });

  test('returns to the page of payments on which the sign-in has begun, and to no other site', async (t) => {
    const { provider, url } = await startOidcGateway(t);
    const returnedTo = async (page: string, host = url) =>
      (await createOperatorBrowser().open(`${host}/oidc/sign-in?${new URLSearchParams({ page })}`)).url;
    const list = '/payments?tenant=shop&status=RJCT';
    assert.equal(await returnedTo(list), `${url}${list}`);
    const payment = '/payments/sandbox/a%2Fb';
    assert.equal(await returnedTo(payment), `${url}${payment}`);
    assert.equal(await returnedTo(payment, url.replace('127.0.0.1', 'localhost')), `${url}${payment}`);
    for (const page of [
      '//example.com/payments',
      'https://example.com',
      '/payments/../api/audit',
      '@example.com',
    ])
      assert.equal(await returnedTo(page), `${url}/`, page);
    provider.person = undefined;
    assert.equal(await returnedTo(list), `${url}${list}&signInError=denied`);
  });

  test('is asked for at the userinfo endpoint if the ID token lacks the claims; groups may be at a path', async (t) => {
    const { provider, url } = await startOidcGateway(t, { claimsInIdToken: false });
    provider.person = { ...ann, preferred_username: 'Ann Smith', groups: ['support'] };
    const browser = createOperatorBrowser();
    await browser.open(`${url}/oidc/sign-in`);
    const { name, role } = await sessionOf(browser, url);
    assert.deepEqual([name, role], ['Ann Smith', 'read']);
    const changed = await browser.send('DELETE', `${url}/api/status-cache`, { headers: { Origin: url } });
    assert.equal(changed.status, 403);
  });

  test('is refused without a role, or if the provider refuses, and gets no session', async (t) => {
    const { provider, url } = await startOidcGateway(t);
    const browser = createOperatorBrowser();
    provider.person = { ...ann, groups: ['visitors'] };
    assert.equal((await browser.open(`${url}/oidc/sign-in`)).url, `${url}/?signInError=no-role`);
    provider.person = undefined;
    assert.equal(
      (await createOperatorBrowser().open(`${url}/oidc/sign-in`)).url,
      `${url}/?signInError=denied`,
    );
    assert.equal((await sessionOf(browser, url)).name, null);
    assert.equal(browser.cookies('127.0.0.1').get('penstock-session'), undefined);
  });

  test('can begin to sign in on two tabs, and finish both in any order', async (t) => {
    const { url } = await startOidcGateway(t);
    const browser = createOperatorBrowser();
    const begin = async () => (await browser.send('GET', `${url}/oidc/sign-in`)).headers.location ?? '';
    for (const tabs of [[await begin(), await begin()], [await begin(), await begin()].toReversed()])
      for (const atProvider of tabs) assert.equal((await browser.open(atProvider)).url, `${url}/`);
    assert.equal((await sessionOf(browser, url)).name, 'ann');
  });

  test('is nobody if the code was issued to another browser, is repeated, or belongs to no sign-in', async (t) => {
    const { url } = await startOidcGateway(t);
    const [victim, attacker] = [createOperatorBrowser(), createOperatorBrowser()];
    const callback = await callbackOf(attacker, url);
    assert.equal((await victim.open(callback)).url, `${url}/?signInError=expired`);
    await victim.send('GET', `${url}/oidc/sign-in`);
    assert.equal((await victim.open(callback)).url, `${url}/?signInError=expired`, 'another state');
    assert.equal((await sessionOf(victim, url)).name, null);
    const attempt = attacker.cookies('127.0.0.1').get('penstock-sign-in') ?? assert.fail();
    assert.equal((await attacker.open(callback)).url, `${url}/`);
    const repeated = await fetch(callback, {
      headers: { Cookie: `penstock-sign-in=${attempt}` },
      redirect: 'manual',
    });
    assert.equal(repeated.headers.get('location'), `${url}/?signInError=expired`, 'once');
    assert.equal(
      (await createOperatorBrowser().open(`${url}/oidc/callback?code=x`)).url,
      `${url}/?signInError=expired`,
    );
  });

  test('loses the event stream and the session at its end', async (t) => {
    const { provider, url, gateway, sections } = await startOidcGateway(t);
    const browser = createOperatorBrowser();
    await browser.open(`${url}/oidc/sign-in`);
    const Cookie = `penstock-session=${browser.cookies('127.0.0.1').get('penstock-session')}`;
    const events = await readEvents(url, { Cookie });
    assert.deepEqual((await events.event('snapshot')).operator, { name: 'ann', role: 'operate' });

    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 9 * 3_600_000 });
    await events.event('end');
    await events.ended();
    assert.equal((await sessionOf(browser, url)).name, null);
    t.mock.timers.reset();

    await browser.open(`${url}/oidc/sign-in`);
    assert.equal((await sessionOf(browser, url)).role, 'operate');
    const demoted = { ...sections.admin.oidc, roles: { read: ['on-call'] } };
    await gateway.reload({ ...sections, admin: { ...sections.admin, oidc: demoted } });
    assert.equal((await sessionOf(browser, url)).role, 'read', 'by the rules of the new configuration');
    await gateway.reload({ ...sections, admin: { ...sections.admin, oidc: undefined } });
    assert.equal((await sessionOf(browser, url)).name, null);
    assert.equal((await browser.send('GET', `${url}/oidc/sign-in`)).status, 404);
    assert.equal(provider.exchanges(), 2);
  });
});

describe('while the provider is down', () => {
  test('tokens and sessions work, and it is found in the background when it starts', async (t) => {
    const { provider, url, gateway } = await startOidcGateway(t, { isUp: false });
    const browser = createOperatorBrowser();
    await until(10_000, 'the gateway reports the provider', () =>
      gateway.logLines.some((line) => line.includes('the OIDC provider is unavailable')),
    );
    assert.equal((await browser.open(`${url}/oidc/sign-in`)).url, `${url}/?signInError=provider-unavailable`);
    assert.equal((await readAdminApi(gateway, '/api/environments')).active, 'sandbox');

    await provider.start();
    await untilProviderKnown(gateway);
    await browser.open(`${url}/oidc/sign-in`);
    assert.equal((await sessionOf(browser, url)).name, 'ann');

    const begun = createOperatorBrowser();
    const { headers } = await begun.send('GET', `${url}/oidc/sign-in`);
    await provider.stop();
    const state = new URL(headers.location ?? '').searchParams.get('state');
    const callback = `${url}/oidc/callback?code=x&state=${state}&iss=${encodeURIComponent(provider.issuer)}`;
    assert.equal((await begun.open(callback)).url, `${url}/?signInError=provider-unavailable`);
    assert.equal((await sessionOf(browser, url)).name, 'ann');
    const asAdmin = { Authorization: `Bearer ${adminToken}` };
    assert.equal((await fetch(`${url}/api/environments`, { headers: asAdmin })).status, 200);
  });
});

describe('two instances on one PostgreSQL, without Redis', { skip: skipWithoutPostgres }, () => {
  test('share the sign-in and the session, and signing out on one ends the event stream on the other', async (t) => {
    const postgres = await newMigratedPostgres();
    const keyFile = join(temporaryFolder(t), 'key');
    writeFileSync(keyFile, `${Buffer.alloc(32, 7).toString('base64')}\n`);
    const state = { postgres, encryptionKeyFile: keyFile };
    const { url, sections } = await startOidcGateway(t, { state });
    const other = await startGateway(t, { ...sections, admin: { ...sections.admin, port: 0 } });
    await untilProviderKnown(other);

    const browser = createOperatorBrowser();
    // The sign-in begins on the first instance; a load balancer gives the response of the provider to the second one.
    let next = `${url}/oidc/sign-in`;
    while (!next.startsWith(`${url}/oidc/callback`)) {
      const { headers } = await browser.send('GET', next);
      next = new URL(headers.location ?? assert.fail(next), next).href;
    }
    const { status, headers } = await browser.send('GET', next.replace(url, other.adminUrl));
    assert.deepEqual([status, headers.location], [302, `${url}/`]);
    for (const origin of [url, other.adminUrl]) {
      const { name, role, method } = await sessionOf(browser, origin);
      assert.deepEqual([name, role, method], ['ann', 'operate', 'oidc'], origin);
    }

    const id = browser.cookies('127.0.0.1').get('penstock-session') ?? '';
    const database = connectPostgres(postgres);
    const rows = await database.query('SELECT * FROM operator_session');
    await database.close();
    assert.equal(rows.length, 1);
    assert.ok(!JSON.stringify(rows).includes(id));
    assert.doesNotMatch(String(rows[0]?.record), /ann|on-call|subject/);

    const events = await readEvents(other.adminUrl, { Cookie: `penstock-session=${id}` });
    await events.event('snapshot');
    const signOut = await browser.send('DELETE', `${url}/api/session`, { headers: { Origin: url } });
    assert.equal(signOut.status, 204);
    await events.event('end');
    for (const origin of [url, other.adminUrl]) {
      const answer = await fetch(`${origin}/api/environments`, {
        headers: { Cookie: `penstock-session=${id}` },
      });
      assert.equal(answer.status, 401);
    }
  });
});

describe('a provider and a console with TLS', () => {
  test('use the authority of admin.oidc.caFile, and Secure cookies with the prefix __Host-', async (t) => {
    const authority = createAuthority(t);
    const [listener, issuer] = [authority.issue('listener'), authority.issue('provider')];
    const { url } = await startOidcGateway(t, {
      scheme: 'https',
      tls: issuer,
      oidc: { caFile: authority.certFile },
      admin: { tls: { certFile: listener.certFile, keyFile: listener.keyFile } },
    });
    const ca = authority.cert;
    const browser = createOperatorBrowser({ ca });
    assert.equal((await browser.open(`${url}/oidc/sign-in`)).url, `${url}/`);
    assert.equal((await sessionOf(browser, url)).name, 'ann');
    const own = browser.received.filter((cookie) => cookie.includes('penstock-'));
    for (const cookie of own)
      assert.match(cookie, /^__Host-penstock-.*; HttpOnly; SameSite=(Lax|Strict); Secure$/);
    const id = browser.cookies('127.0.0.1').get('__Host-penstock-session');
    const plain = await createOperatorBrowser({ ca }).send('GET', `${url}/api/environments`, {
      headers: { Cookie: `penstock-session=${id}` },
    });
    assert.equal(plain.status, 401, 'a page on plain HTTP can set a cookie without the prefix');
  });
});
