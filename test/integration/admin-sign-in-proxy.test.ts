/** Operators whom a proxy in front has authenticated: its headers count from the proxy itself, and from nobody else. */

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { readAdminApi } from '../kit/admin-api.ts';
import { startAuthenticatingProxy } from '../kit/authenticating-proxy.ts';
import { readEvents } from '../kit/event-stream.ts';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { createAuthority } from '../kit/openssl.ts';
import { createOperatorBrowser } from '../kit/operator-browser.ts';

const roles = { operate: ['on-call'], read: ['support'] };
const person = (name: string, groups: string) =>
  [
    ['X-Forwarded-User', name],
    ['X-Forwarded-Groups', groups],
  ] as const;

/** The gateway trusts 127.0.0.2 only; the tests themselves connect from 127.0.0.1. */
async function start(t: TestContext, more: object = {}) {
  const admin = { trustedProxies: ['127.0.0.2'], proxySignIn: { roles }, ...more };
  const { bank, gateway } = await startGatewayWithBank(t, { admin });
  const proxy = await startAuthenticatingProxy(t, gateway.adminUrl, { localAddress: '127.0.0.2' });
  const get = async (origin: string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${origin}/api/session`, { headers });
    return { status: response.status, body: JSON.parse(await response.text()) };
  };
  return { bank, gateway, proxy, get, admin };
}

const sent = (name: string, groups: string) => Object.fromEntries(person(name, groups));

describe('an operator behind a trusted proxy', () => {
  test('has the name of the header and the role of the groups, and is named in the audit log', async (t) => {
    const { gateway, proxy, get } = await start(t);
    proxy.fields = person('ann@bank.example', 'staff, on-call');
    const { body } = await get(proxy.url);
    assert.deepEqual(body, {
      name: 'ann@bank.example',
      role: 'operate',
      method: 'proxy',
      expiresAt: null,
      signInWith: ['token', 'proxy'],
    });
    const switched = await fetch(`${proxy.url}/api/environments/active`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ environment: 'sandbox', reason: 'a test' }),
    });
    assert.equal(switched.status, 200, await switched.text());
    assert.match(JSON.stringify(await readAdminApi(gateway, '/api/audit')), /"who":"ann@bank\.example"/);
  });

  test('may read only with a group that has the role read, and nothing without a role', async (t) => {
    const { proxy } = await start(t);
    const statuses = async () => {
      const purged = await fetch(`${proxy.url}/api/status-cache`, { method: 'DELETE' });
      return [(await fetch(`${proxy.url}/api/environments`)).status, purged.status];
    };
    proxy.fields = person('bob', 'support');
    assert.deepEqual(await statuses(), [200, 403]);
    proxy.fields = person('eve', 'visitors');
    assert.deepEqual(await statuses(), [403, 403]);
    assert.match(
      await (await fetch(`${proxy.url}/api/environments`)).text(),
      /None of your groups has a role/,
    );
    proxy.fields = [];
    assert.deepEqual(await statuses(), [401, 401]);
  });

  test('is nobody if the same header comes from another address', async (t) => {
    const { gateway, get } = await start(t);
    for (const headers of [
      sent('ann', 'on-call'),
      { ...sent('ann', 'on-call'), 'X-Forwarded-For': '127.0.0.2' },
      { ...sent('ann', 'on-call'), Forwarded: 'for=127.0.0.2' },
    ]) {
      assert.equal((await get(gateway.adminUrl, headers)).body.name, null);
      assert.equal((await fetch(`${gateway.adminUrl}/api/environments`, { headers })).status, 401);
    }
  });

  test('is nobody if the proxy passes on a header of the client beside its own', async (t) => {
    const { gateway, get } = await start(t);
    const options = { localAddress: '127.0.0.2', keepsForeignFields: true };
    const careless = await startAuthenticatingProxy(t, gateway.adminUrl, options);
    careless.fields = person('bob', 'support');
    assert.equal((await get(careless.url)).body.name, 'bob');
    assert.equal((await get(careless.url, { 'X-Forwarded-User': 'ann' })).body.name, null);
    assert.equal((await get(careless.url, { 'x-forwarded-groups': 'on-call' })).body.name, null);
  });

  test('is never taken for an operator with a token', async (t) => {
    const { proxy, get } = await start(t);
    proxy.fields = person('admin', 'on-call');
    assert.equal((await get(proxy.url)).body.name, 'admin (proxy)');
    assert.equal((await get(proxy.url, { Authorization: `Bearer ${adminToken}` })).body.name, 'admin');
    proxy.fields = person('Jürgen', 'on-call').map(
      ([name, value]) => [name, Buffer.from(value).toString('latin1')] as const,
    );
    assert.equal((await get(proxy.url)).body.name, 'Jürgen');
  });

  test('cannot be made to change something by a foreign page: the proxy would add the header', async (t) => {
    const { proxy } = await start(t, { publicUrl: 'https://console.example' });
    proxy.fields = person('ann', 'on-call');
    const purge = async (headers: Readonly<Record<string, string>>) =>
      (await fetch(`${proxy.url}/api/status-cache`, { method: 'DELETE', headers })).status;
    assert.equal(await purge({ Origin: 'https://evil.example' }), 403);
    assert.equal(await purge({ Origin: 'https://console.example' }), 204);
    assert.equal(await purge({}), 204, 'a program');
  });

  test('loses the event stream when a reload removes the proxy', async (t) => {
    const { bank, gateway, proxy } = await start(t);
    proxy.fields = person('ann', 'on-call');
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const events = await readEvents(proxy.url, {});
    await events.event('snapshot');
    await gateway.reload({
      environments,
      admin: { trustedProxies: ['127.0.0.3'], proxySignIn: { roles } },
    });
    await events.event('end');
    await events.ended();
    assert.equal((await fetch(`${proxy.url}/api/environments`)).status, 401);
  });

  test('must sign in again for the event stream after admin.sessionTtl, because the proxy may have revoked the access', async (t) => {
    const { proxy } = await start(t, { sessionTtl: '1h' });
    proxy.fields = person('ann', 'on-call');
    const events = await readEvents(proxy.url, {});
    await events.event('snapshot');
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3_601_000 });
    await events.event('end');
    await events.ended();
    t.mock.timers.reset();
    assert.equal((await readEvents(proxy.url, {})).status, 200);
  });

  test('can be named by the client certificate of the proxy', async (t) => {
    const authority = createAuthority(t);
    const [listener, trusted, other] = ['listener', 'proxy', 'other'].map((name) => authority.issue(name));
    assert.ok(listener && trusted && other);
    const fingerprint = createHash('sha256').update(new X509Certificate(trusted.cert).raw).digest('hex');
    const { gateway, get } = await start(t, {
      trustedProxies: [fingerprint],
      tls: { certFile: listener.certFile, keyFile: listener.keyFile, clientCaFile: authority.certFile },
    });
    const target = gateway.adminUrl.replace('http:', 'https:');
    const connect = async (certificate?: typeof trusted) => {
      const proxy = await startAuthenticatingProxy(t, target, {
        ca: authority.cert,
        ...(certificate && { certificate }),
      });
      proxy.fields = person('ann', 'on-call');
      return (await get(proxy.url)).body.name;
    };
    assert.equal(await connect(trusted), 'ann');
    assert.equal(await connect(other), null);
    assert.equal(await connect(), null);
    const selfSigned = createAuthority(t, 'elsewhere').issue('proxy');
    assert.equal(await connect(selfSigned), null, 'of another authority');
    const browser = createOperatorBrowser({ ca: authority.cert });
    const direct = await browser.send('GET', `${target}/api/session`, { headers: sent('ann', 'on-call') });
    assert.equal(JSON.parse(direct.text).name, null);
  });
});
