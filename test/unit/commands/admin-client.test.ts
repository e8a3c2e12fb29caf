import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { createAdminClient } from '../../../src/commands/admin-client.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { configOf } from '../../kit/gateway.ts';
import { listen } from '../../kit/ports.ts';

/** The settings of a gateway whose admin listener is this server. */
async function serveAdmin(t: TestContext, serve: RequestListener) {
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

describe('the client of the admin API', () => {
  test('authenticates with the token and sends the body as JSON', async (t) => {
    const seen: unknown[] = [];
    const config = await serveAdmin(t, (request, response) => {
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

  test('explains what to do if there is no token', () => {
    const config = configOf({ environments: { sandbox: { baseUrl: 'https://bank.example' } } });
    assert.throws(() => createAdminClient(config), /No token: set PENSTOCK_ADMIN_TOKEN/);
  });

  test('names the address if no gateway, or another program, listens there', async (t) => {
    const config = await serveAdmin(
      t,
      (_request, response) => void response.end('<html>another program</html>'),
    );
    const call = createAdminClient(config);
    await assert.rejects(
      call('GET', '/environments'),
      new RegExp(`No gateway answers at http://127.0.0.1:${config.admin.port}`),
    );
    const nobody = createAdminClient(settingsFor(t, 1));
    await assert.rejects(nobody('GET', '/environments'), /No gateway answers at http:\/\/127\.0\.0\.1:1/);
  });
});
