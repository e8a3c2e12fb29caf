/**
 * Attacks on the admin listener, from the same machine or network or from a web page in an operator's browser: other methods,
 * other spellings of the path, foreign host names (DNS rebinding), cookies.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { countConstantTimeComparisons } from '../kit/constant-time.ts';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { sendRawAdminRequest } from '../kit/raw-admin-request.ts';

/** None of these is exactly `/health/live`, `/health/ready`, `/metrics` or a file of the console. */
const paths = String.raw`
  /index.html /console.js/ /Console.js /console/console.js /api /api/ /api/environments /api/environments/active /api/audit /api/config /ADMIN /API/environments
  /Api/Environments //api/environments /api//environments /api;x /api;x=y/environments
  /api/environments;x /%61pi/environments /api/%65nvironments /api/.. /api/../api/environments
  /./api/environments /health/../api/environments /health/live/../../api/environments
  /health/live%2f..%2f..%2fapi /api%2fenvironments /api\environments /health/live/ /health/LIVE
  /health//live /health/live;x /health /api/% /api/%ff /% * http://localhost/api/environments
  /api?x=/health/live /metrics/ /Metrics /..%2fadmin-app.ts /%2e%2e/admin-app.ts /console.js%00
`
  .trim()
  .split(/\s+/);
const publicPaths = ['/health/live', '/metrics', '/', '/?/api', '/console.js'];
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND'];

describe('the admin listener without a token', () => {
  for (const method of methods) {
    test(`answers 401 to ${method} for every spelling of a path, always with the same response, and changes nothing`, async (t) => {
      const { gateway } = await startGatewayWithBank(t);
      for (const path of method === 'GET' ? paths : [...paths, ...publicPaths]) {
        const { status, headers, body } = await sendRawAdminRequest(gateway, `${method} ${path}`).catch(
          (cause: unknown) => {
            throw new Error(`no answer to ${method} ${path}`, { cause });
          },
        );
        assert.equal(status, 401, path);
        assert.equal(headers.get('www-authenticate'), 'Bearer realm="penstock"', path);
        assert.equal(headers.get('set-cookie'), undefined, path);
        assert.deepEqual(JSON.parse(body), {
          error: 'The operator token is missing or unknown; send Authorization: Bearer TOKEN.',
        });
      }
      assert.equal((await readAdminApi(gateway, '/api/environments')).version, 1);
    });
  }

  test('answers 401 to HEAD', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const path of paths) {
      assert.equal((await call(gateway.adminUrl, { method: 'HEAD', path })).status, 401, path);
    }
  });

  test('answers 400 to a malformed request target, whatever the method', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const method of methods) {
      assert.equal((await sendRawAdminRequest(gateway, `${method} ?/api/environments`)).status, 400);
      const { status, headers, body } = await sendRawAdminRequest(
        gateway,
        `${method} http://[/api/environments`,
      );
      assert.equal(status, 400);
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.deepEqual(JSON.parse(body), { error: 'The URL is malformed.' });
    }
  });

  test('answers 401 to malformed and wrong credentials, and to a token outside the Authorization header', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const credentials = [
      'Bearer',
      'Bearer ',
      `Bearer ${adminToken}x`,
      `Bearer ${adminToken.toUpperCase()}`,
      `Bearer ${adminToken.slice(1)}`,
      adminToken,
      `Basic ${adminToken}`,
      `Bearer ${adminToken} ${adminToken}`,
      `Bearer,${adminToken}`,
      `Bearer  ${adminToken}`,
      `Basic ${Buffer.from(`admin:${adminToken}`).toString('base64')}`,
      'Bearer undefined',
      'Bearer null',
    ];
    for (const credential of credentials) {
      const { status } = await sendRawAdminRequest(gateway, 'GET /api/environments', [
        `Authorization: ${credential}`,
      ]);
      assert.equal(status, 401, credential);
    }
    for (const fields of [
      [`Cookie: token=${adminToken}; Authorization=Bearer ${adminToken}`],
      [`X-API-Key: ${adminToken}`],
    ]) {
      assert.equal((await sendRawAdminRequest(gateway, 'GET /api/environments', fields)).status, 401);
    }
    assert.equal(
      (
        await sendRawAdminRequest(
          gateway,
          `GET /api/environments?token=${adminToken}&access_token=${adminToken}`,
        )
      ).status,
      401,
    );
  });

  test('serves health and metrics, and health reveals only the status and its reasons', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const live = await call(gateway.adminUrl, { method: 'GET', path: '/health/live' });
    assert.deepEqual([live.status, live.text], [200, '{"status":"live"}']);
    const ready = await call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    const { reasons, ...rest } = jsonOf(ready);
    assert.deepEqual([ready.status, rest], [200, { status: 'ready' }]);
    assert.match(
      String(reasons),
      /^the database is in memory: a restart loses [\w ,-]+; set state\.file or state\.postgres$/,
    );
    assert.equal((await call(gateway.adminUrl, { method: 'GET', path: '/metrics' })).status, 200);
  });
});

describe('the admin listener with a token', () => {
  test('answers 421 to a foreign host name (DNS rebinding), and changes nothing', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const token = `Authorization: Bearer ${adminToken}`;
    const hosts = [
      'evil.example',
      'evil.example:9090',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'localhost:1@evil.example',
      '0x7f.1',
      'localhost.',
      '',
    ];
    for (const host of hosts) {
      for (const line of ['GET /api/environments', 'PUT /api/environments/active']) {
        assert.equal((await sendRawAdminRequest(gateway, line, [token, `Host: ${host}`])).status, 421, host);
      }
    }
    assert.equal((await readAdminApi(gateway, '/api/environments')).version, 1);
  });

  test('accepts every IP address and localhost as host, in any letter case', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:9090',
      'localhost:9090',
      'LOCALHOST',
      '[::1]:9090',
      '10.0.0.7',
    ]) {
      const fields = [`Authorization: bearer ${adminToken}`, `Host: ${host}`];
      assert.equal((await sendRawAdminRequest(gateway, 'GET /api/environments', fields)).status, 200, host);
    }
  });

  test('sets no cookie, forbids caching and content sniffing, and allows no other origin', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const path of [
      '/api/environments',
      '/api/config',
      '/api/audit',
      '/nothing',
      '/health/live',
      '/health/ready',
    ]) {
      const { header } = await callAdminApi(gateway, 'GET', path);
      assert.equal(header('Set-Cookie'), undefined);
      assert.equal(header('Cache-Control'), 'no-store');
      assert.equal(header('X-Content-Type-Options'), 'nosniff');
      assert.equal(header('Access-Control-Allow-Origin'), undefined);
      assert.equal(header('X-Powered-By'), undefined);
    }
  });

  test('changes nothing on GET', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    for (const path of [
      '/api/environments/active',
      '/api/environments/active?environment=sandbox&reason=x',
    ]) {
      assert.equal((await callAdminApi(gateway, 'GET', path)).status, 405);
    }
    assert.equal((await readAdminApi(gateway, '/api/environments')).version, 1);
  });

  test('answers 400 to a body with an unsupported encoding or character set', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    const token = `Authorization: Bearer ${adminToken}`;
    assert.equal(
      (await sendRawAdminRequest(gateway, 'PUT /api/environments/active', [token, 'Content-Encoding: gzip']))
        .status,
      400,
    );
    assert.equal(
      (
        await sendRawAdminRequest(gateway, 'PUT /api/environments/active', [
          token,
          'Content-Type: application/json; charset=klingon',
        ])
      ).status,
      400,
    );
    assert.equal((await sendRawAdminRequest(gateway, 'PUT /api/environments/active', [token])).status, 200);
  });
});

test('the admin listener compares a token with that of every operator, in constant time', async (t) => {
  const comparisons = countConstantTimeComparisons(t);
  const operators = ['1', '2', '3'].map((digit) => ({
    name: `operator-${digit}`,
    tokenSha256: digit.repeat(64),
  }));
  const { gateway } = await startGatewayWithBank(t, { admin: { operators } });
  for (const token of [adminToken, 'wrong']) {
    const before = comparisons();
    await call(gateway.adminUrl, {
      method: 'GET',
      path: '/api/audit',
      headers: [['Authorization', `Bearer ${token}`]],
    });
    assert.equal(comparisons() - before, 4);
  }
});
