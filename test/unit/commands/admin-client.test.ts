import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { createAdminClient } from '../../../src/commands/admin-client.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { configOf } from '../../kit/gateway.ts';
import { listen } from '../../kit/ports.ts';

/** The settings of a gateway whose operators' door is this one. */
async function doorIs(t: TestContext, serve: RequestListener) {
  const server = createServer(serve);
  t.after(() => server.close());
  return settingsFor(t, await listen(server));
}

/** Settings with the operator's token in a file. */
function settingsFor(t: TestContext, port: number, token = 'secret') {
  const tokenFile = join(temporaryFolder(t), 'token');
  writeFileSync(tokenFile, `${token}\n`);
  return configOf({
    environments: { sandbox: { baseUrl: 'https://bank.example' } },
    admin: { port, tokenFile },
  });
}

describe('a command that speaks to the gateway', () => {
  test('identifies itself by the token, and sends what it has to say as JSON', async (t) => {
    const seen: unknown[] = [];
    const config = await doorIs(t, (request, response) => {
      request
        .setEncoding('utf8')
        .on('data', (body) => seen.push(request.method, request.url, request.headers.authorization, body));
      request.on('end', () => response.writeHead(409).end('{"error":"no"}'));
    });
    const call = createAdminClient(config);
    assert.deepEqual(await call('PUT', '/environments/active', { environment: 'sandbox' }), {
      ok: false,
      status: 409,
      body: { error: 'no' },
    });
    assert.deepEqual(seen, ['PUT', '/api/environments/active', 'Bearer secret', '{"environment":"sandbox"}']);
  });

  test('says what to do if there is no token', () => {
    const config = configOf({ environments: { sandbox: { baseUrl: 'https://bank.example' } } });
    assert.throws(() => createAdminClient(config), /No token: set PENSTOCK_ADMIN_TOKEN/);
  });

  test('says where it looked if no gateway runs there, or something else does', async (t) => {
    const config = await doorIs(t, (_request, response) => void response.end('<html>another program</html>'));
    const call = createAdminClient(config);
    await assert.rejects(
      call('GET', '/environments'),
      new RegExp(`No gateway answers at http://127.0.0.1:${config.admin.port}`),
    );
    const nobody = createAdminClient(settingsFor(t, 1));
    await assert.rejects(nobody('GET', '/environments'), /No gateway answers at http:\/\/127\.0\.0\.1:1/);
  });
});
