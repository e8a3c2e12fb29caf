import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { showHealth } from '../../../src/commands/health.ts';
import { listen } from '../../kit/ports.ts';

/** The address of a server that sends this response to every request, and the paths of the requests. */
async function serveHealth(t: TestContext, status: number, body: unknown) {
  const paths: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    response.writeHead(status).end(JSON.stringify(body));
  });
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${await listen(server)}`, paths };
}

describe('penstock health', () => {
  test('prints that the gateway is ready, with its warnings', async (t) => {
    const body = { status: 'ready', reasons: ['the QWAC of sandbox expires in 3 days'] };
    const { url, paths } = await serveHealth(t, 200, body);
    assert.deepEqual(await showHealth({ url }), {
      lines: ['ready', '  the QWAC of sandbox expires in 3 days'],
      data: body,
      exitCode: 0,
    });
    assert.deepEqual(paths, ['/health/ready']);
  });

  test('exits with 1 and prints the reasons if the gateway is not ready', async (t) => {
    const { url } = await serveHealth(t, 503, { status: 'not ready', reasons: ['draining'] });
    const { lines, exitCode } = await showHealth({ url });
    assert.deepEqual([lines, exitCode], [['not ready', '  draining'], 1]);
  });

  test('asks only whether the process responds with --live', async (t) => {
    const { url, paths } = await serveHealth(t, 200, { status: 'live' });
    const { lines, exitCode } = await showHealth({ url, live: true });
    assert.deepEqual([lines, exitCode, paths], [['live'], 0, ['/health/live']]);
  });

  test('exits with 69 if another program answers', async (t) => {
    const { url } = await serveHealth(t, 200, { hello: 'world' });
    await assert.rejects(showHealth({ url }), {
      message: /is not the admin listener of a gateway/,
      exitCode: 69,
    });
  });
});
