/** Operators with tokens: throttled failures, sessions in a browser, and reloads that add and revoke tokens. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { readAdminApi } from '../kit/admin-api.ts';
import { readEvents } from '../kit/event-stream.ts';
import { adminToken, type GatewayUnderTest, startGatewayWithBank } from '../kit/gateway.ts';
import { createOperatorBrowser } from '../kit/operator-browser.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const operator = (name: string, role = 'operate') => ({
  name,
  role,
  tokenSha256: sha256(`token of ${name}`.replaceAll(' ', '-')),
});
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const asOperator = (name: string) => bearer(`token-of-${name}`);

const statusFor = async ({ adminUrl }: GatewayUnderTest, headers: Readonly<Record<string, string>>) =>
  (await fetch(`${adminUrl}/api/environments`, { headers })).status;

const purge = (adminUrl: string) => `${adminUrl}/api/status-cache?environment=sandbox`;

describe('an operator with a token', () => {
  test('is accepted after 1,000 wrong tokens from the same address, which are answered with 401 and then 429', async (t) => {
    const { gateway } = await startGatewayWithBank(t, { admin: { operators: [operator('ann')] } });
    const answers: Response[] = [];
    for (let round = 0; round < 20; round++) {
      const wrong = Array.from({ length: 50 }, (_, index) => bearer(`wrong-${round}-${index}`));
      answers.push(
        ...(await Promise.all(
          wrong.map((headers) => fetch(`${gateway.adminUrl}/api/environments`, { headers })),
        )),
      );
    }
    assert.equal(answers.length, 1_000);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401, 429]));
    assert.ok(answers.filter(({ status }) => status === 401).length >= 30);
    const refused = answers.filter(({ status }) => status === 429);
    for (const { headers } of refused) assert.match(headers.get('Retry-After') ?? '', /^[12]$/);
    assert.match((await refused[0]?.text()) ?? '', /A valid token is accepted at any time/);
    assert.equal(await statusFor(gateway, asOperator('ann')), 200);
    assert.equal(await statusFor(gateway, {}), 401, 'without a token, nothing was guessed');

    const browser = createOperatorBrowser();
    const signIn = (token: string) =>
      browser.send('POST', `${gateway.adminUrl}/api/session`, { body: { token } });
    assert.ok([401, 429].includes((await signIn('wrong')).status)); // 401 if the machine is slow
    assert.equal((await signIn('token-of-ann')).status, 200);
    assert.equal((await browser.send('GET', `${gateway.adminUrl}/api/environments`)).status, 200);
  });

  test('added by a reload is accepted, and one that it removes loses the running event stream', async (t) => {
    const environments = (await startGatewayWithBank(t)).bank;
    const sections = (...operators: readonly object[]) => ({
      environments: { sandbox: { baseUrl: environments.baseUrl } },
      admin: { operators },
    });
    const { gateway } = await startGatewayWithBank(t, sections(operator('ann'), operator('bob')));
    const [ann, bob] = [
      await readEvents(gateway.adminUrl, asOperator('ann')),
      await readEvents(gateway.adminUrl, asOperator('bob')),
    ];
    await ann.event('snapshot');
    assert.equal(await statusFor(gateway, asOperator('eve')), 401);

    await gateway.reload(sections(operator('bob'), operator('eve')));
    assert.deepEqual(await ann.event('end'), { why: 'Your access has ended; sign in again.' });
    await ann.ended();
    assert.deepEqual(
      [await statusFor(gateway, asOperator('ann')), await statusFor(gateway, asOperator('eve'))],
      [401, 200],
    );
    await bob.event('tick');
    assert.equal((await readEvents(gateway.adminUrl, asOperator('ann'))).status, 401);

    await gateway.reload(sections(operator('bob', 'read'), operator('eve')));
    await bob.ended();
    const changed = await readEvents(gateway.adminUrl, asOperator('bob'));
    assert.deepEqual((await changed.event('snapshot')).operator, { name: 'bob', role: 'read' });
  });

  test('can exchange the token for a session, which a reload revokes together with the token', async (t) => {
    const { bank } = await startGatewayWithBank(t);
    const sections = (...operators: readonly object[]) => ({
      environments: { sandbox: { baseUrl: bank.baseUrl } },
      admin: { operators, sessionTtl: '1h' },
    });
    const { gateway } = await startGatewayWithBank(t, sections(operator('ann')));
    const { adminUrl } = gateway;
    const browser = createOperatorBrowser();
    const session = async () => JSON.parse((await browser.send('GET', `${adminUrl}/api/session`)).text);
    const nobody = { name: null, role: null, method: null, expiresAt: null, signInWith: ['token'] };
    assert.deepEqual(await session(), nobody);

    const wrong = await browser.send('POST', `${adminUrl}/api/session`, { body: { token: 'wrong' } });
    assert.deepEqual([wrong.status, browser.received], [401, []]);
    const answer = await browser.send('POST', `${adminUrl}/api/session`, { body: { token: 'token-of-ann' } });
    assert.equal(answer.status, 200);
    const { expiresAt, ...rest } = JSON.parse(answer.text);
    assert.deepEqual(rest, { name: 'ann', role: 'operate', method: 'token', signInWith: ['token'] });
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 3_600_000) < 60_000);
    assert.deepEqual(await session(), { ...rest, expiresAt });
    const [cookie = ''] = browser.received;
    assert.match(cookie, /^penstock-session=[\w-]{43}; Path=\/; Max-Age=\d{4}; HttpOnly; SameSite=Strict$/);

    await gateway.reload(sections(operator('eve')));
    assert.deepEqual(await session(), nobody);
    assert.equal((await browser.send('GET', `${adminUrl}/api/environments`)).status, 401);
    const audit = await readAdminApi(gateway, '/api/audit');
    assert.match(
      JSON.stringify(audit),
      /"who":"ann","action":"sign in","outcome":"done","details":\{"method":"token","role":"operate"\}/,
    );
  });

  test('ends the session on every tab by signing out, with its event stream', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const { adminUrl } = gateway;
    const browser = createOperatorBrowser();
    await browser.send('POST', `${adminUrl}/api/session`, { body: { token: adminToken } });
    const cookie = browser.cookies('127.0.0.1').get('penstock-session') ?? '';
    const Cookie = `penstock-session=${cookie}`;
    const events = await readEvents(adminUrl, { Cookie });
    await events.event('snapshot');
    const signOut = await browser.send('DELETE', `${adminUrl}/api/session`, {
      headers: { Origin: adminUrl },
    });
    assert.equal(signOut.status, 204);
    await events.event('end');
    assert.equal(browser.cookies('127.0.0.1').size, 0);
    assert.equal(await statusFor(gateway, { Cookie }), 401);
  });
});

describe('a session in a browser', () => {
  test('may change something from the page of the console only', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const { adminUrl } = gateway;
    const browser = createOperatorBrowser();
    await browser.send('POST', `${adminUrl}/api/session`, { body: { token: adminToken } });
    const foreign: readonly Readonly<Record<string, string>>[] = [
      {},
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { Origin: 'http://127.0.0.1:1' },
      { Origin: adminUrl, 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
    ];
    for (const headers of foreign) {
      for (const [method, url] of [
        ['DELETE', purge(adminUrl)],
        ['DELETE', `${adminUrl}/api/session`],
      ] as const) {
        const { status, text } = await browser.send(method, url, { headers });
        assert.equal(status, 403, JSON.stringify(headers));
        assert.match(text, /Another web page sent this request/);
      }
      assert.equal((await browser.send('GET', `${adminUrl}/api/environments`, { headers })).status, 200);
    }
    for (const headers of [{ Origin: adminUrl }, { 'Sec-Fetch-Site': 'same-origin' }])
      assert.equal((await browser.send('DELETE', purge(adminUrl), { headers })).status, 204);
    const withToken = await fetch(purge(adminUrl), { method: 'DELETE', headers: bearer(adminToken) });
    assert.equal(withToken.status, 204, 'a token in a header needs no such check');
  });

  test('is refused under an unknown id, and does not count as a failed attempt', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (let round = 0; round < 40; round++)
      assert.equal(await statusFor(gateway, { Cookie: `penstock-session=${round}` }), 401);
  });
});
