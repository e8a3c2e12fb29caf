import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { adminListenerOf, adminUrlOf, createAdminClient } from '../../../src/commands/admin-client.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { freePort, listen } from '../../kit/ports.ts';

/** A server in place of the admin listener. @returns its address and a token */
async function serveAdmin(t: TestContext, serve: RequestListener) {
  const server = createServer(serve);
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${await listen(server)}`, token: 'secret' };
}

function fileWith(t: TestContext, text: string): string {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, text);
  return file;
}

describe('the client of the admin API', () => {
  test('authenticates with the token and sends the body as JSON', async (t) => {
    const seen: unknown[] = [];
    const listener = await serveAdmin(t, (request, response) => {
      request
        .setEncoding('utf8')
        .on('data', (body) => seen.push(request.method, request.url, request.headers.authorization, body));
      request.on('end', () => response.writeHead(409).end('{"error":"no"}'));
    });
    const call = createAdminClient(listener);
    assert.deepEqual(await call('PUT', '/environments/active', { environment: 'sandbox' }), {
      ok: false,
      status: 409,
      body: { error: 'no' },
    });
    assert.deepEqual(seen, ['PUT', '/api/environments/active', 'Bearer secret', '{"environment":"sandbox"}']);
  });

  test('accepts a success without a body', async (t) => {
    const listener = await serveAdmin(t, (_request, response) => void response.writeHead(204).end());
    const response = await createAdminClient(listener)('DELETE', '/status-cache');
    assert.deepEqual(response, { ok: true, status: 204, body: undefined });
  });

  test('names the address if no gateway, or another program, listens there', async (t) => {
    const page = await serveAdmin(
      t,
      (_request, response) => void response.end('<html>another program</html>'),
    );
    const other = await serveAdmin(t, (_request, response) => {
      response.writeHead(404).end('{"tppMessages":[]}');
    });
    for (const [listener, status] of [
      [page, 200],
      [other, 404],
    ] as const)
      await assert.rejects(createAdminClient(listener)('GET', '/environments'), {
        message: `The program at ${listener.url} is not the admin listener of a gateway: it answered ${status}. Start the gateway, or name its admin listener with --url.`,
        exitCode: 69,
      });
    const url = `http://127.0.0.1:${await freePort()}`;
    await assert.rejects(createAdminClient({ url, token: 'secret' })('GET', '/environments'), {
      message: `No gateway answers at ${url} (ECONNREFUSED). Start the gateway, or name its admin listener with --url.`,
      exitCode: 69,
    });
  });

  test('does not wait for a response forever', async (t) => {
    const silent = await serveAdmin(t, () => {});
    await assert.rejects(createAdminClient(silent, 1)('GET', '/environments'), {
      message: /^No gateway answers at .* \(timeout\)\./,
      exitCode: 69,
    });
  });

  test('does not follow a redirect: the token is for this address only', async (t) => {
    const seen: string[] = [];
    const other = await serveAdmin(t, (request, response) => {
      seen.push(request.url ?? '');
      response.end('{}');
    });
    const listener = await serveAdmin(t, (_request, response) => {
      response.writeHead(307, { Location: `${other.url}/api/audit` }).end();
    });
    await assert.rejects(createAdminClient(listener)('GET', '/audit'), { exitCode: 69 });
    assert.deepEqual(seen, []);
  });
});

describe('the address and the token of the admin listener', () => {
  test('come from the configuration', (t) => {
    const tokenFile = fileWith(t, 'secret\n');
    const sections = { environments: { sandbox: { baseUrl: 'https://bank.example' } } };
    const config = fileWith(t, stringify({ ...sections, admin: { host: '::1', port: 9191, tokenFile } }));
    assert.deepEqual(adminListenerOf({ config }, {}), { url: 'http://[::1]:9191', token: 'secret' });
    const everywhere = fileWith(t, stringify({ ...sections, admin: { host: '0.0.0.0', tokenFile } }));
    assert.equal(adminListenerOf({ config: everywhere }, {}).url, 'http://127.0.0.1:9090');
  });

  test('require --url if the gateway chooses its port', (t) => {
    const sections = { environments: { sandbox: { baseUrl: 'https://bank.example' } }, admin: { port: 0 } };
    const config = fileWith(t, stringify(sections));
    assert.throws(() => adminListenerOf({ config }, { PENSTOCK_ADMIN_TOKEN: 'secret' }), {
      message: /^admin\.port is 0, .* --url URL\.$/,
      exitCode: 64,
    });
  });

  test('refuse a token that no header can contain, without quoting it', (t) => {
    for (const text of ['two words', 'two\nlines', 'naïve'])
      assert.throws(() => adminListenerOf({ url: 'http://a', tokenFile: fileWith(t, text) }, {}), {
        message:
          /^The operator token contains a space, a line break or another character that no token has: /,
        exitCode: 77,
      });
  });

  test('need no token and no valid configuration for a health check', (t) => {
    const config = fileWith(t, 'admin: { port: 9191 }\nlisten: { port: nowhere }');
    assert.equal(adminUrlOf({ config }, {}), 'http://127.0.0.1:9191');
    assert.equal(adminUrlOf({ url: 'http://192.0.2.1:9090/' }, {}), 'http://192.0.2.1:9090');
    assert.equal(adminUrlOf({}, {}), 'http://127.0.0.1:9090');
  });

  test('come from --url and --token-file, without a configuration', (t) => {
    const tokenFile = fileWith(t, 'secret\n');
    for (const [given, url] of [
      ['http://192.0.2.1:9090', 'http://192.0.2.1:9090'],
      ['https://ops.example/penstock/', 'https://ops.example/penstock'],
    ] as const)
      assert.deepEqual(adminListenerOf({ url: given, tokenFile }, {}), { url, token: 'secret' });
  });

  test('prefer the options to the configuration', (t) => {
    const tokenFile = fileWith(t, 'secret');
    const options = { url: 'http://127.0.0.1:9191', tokenFile, config: '/no/such/file' };
    assert.deepEqual(adminListenerOf(options, {}), { url: 'http://127.0.0.1:9191', token: 'secret' });
  });

  test('refuse what is not a plain address', (t) => {
    const tokenFile = fileWith(t, 'secret');
    for (const url of ['127.0.0.1:9090', 'ftp://127.0.0.1', 'http://user:word@127.0.0.1', 'http://a/?b', 'x'])
      assert.throws(() => adminListenerOf({ url, tokenFile }, {}), { exitCode: 64 }, url);
  });

  test('say what to do if one is missing', (t) => {
    const url = 'http://127.0.0.1:9090';
    assert.throws(() => adminListenerOf({ url }, {}), {
      message: /set PENSTOCK_ADMIN_TOKEN, or .* --token-file/,
      exitCode: 77,
    });
    for (const tokenFile of ['/no/such/file', fileWith(t, '')])
      assert.throws(() => adminListenerOf({ url, tokenFile }, {}), {
        message: new RegExp(tokenFile),
        exitCode: 77,
      });
    assert.throws(() => adminListenerOf({}, {}), { message: /--url URL.*--config FILE/, exitCode: 64 });
    const config = fileWith(t, 'listen: { port: nowhere }');
    assert.throws(() => adminListenerOf({ config }, {}), {
      message: /errors? in the configuration/,
      exitCode: 78,
    });
  });
});
