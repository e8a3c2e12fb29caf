import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createPostWebhook } from '../../../src/notifications/post-webhook.ts';
import { createIsAllowedPrivate, type ResolveName } from '../../../src/notifications/resolve-endpoint.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { scopeOfAllTests } from '../../kit/test-scope.ts';
import { startWebhookReceiver } from '../../kit/webhook-receiver.ts';
import { until, within } from '../../kit/within.ts';

const life = scopeOfAllTests();
const authority = createAuthority(life);
const tppCertificate = authority.issue('tpp', { extensions: 'subjectAltName = DNS:tpp.example' });
const body = Buffer.from('{"paymentId":"1"}');
const never = new AbortController().signal;

const resolvesTo =
  (...addresses: readonly string[]): ResolveName =>
  async () =>
    addresses;

/** Sends to a receiver on loopback, whose network is allowed. */
const createPost = (
  resolveName: ResolveName,
  { allowPrivate = ['127.0.0.0/8', '::1'], timeoutMs = 15_000 } = {},
) =>
  createPostWebhook({
    isAllowedPrivate: createIsAllowedPrivate(allowPrivate),
    timeoutMs,
    resolveName,
    ca: authority.cert,
  });

const post = createPost(resolvesTo('127.0.0.1'));

describe('the client for webhooks', () => {
  test('sends a POST with the given fields and body, and keeps nothing of the response', async (t) => {
    const receiver = await startWebhookReceiver(t);
    receiver.answerWith((response) => response.writeHead(201, { 'x-secret': 'a' }).end('secret'));
    const url = new URL(`http://127.0.0.1:${receiver.port}/hook?x=1`);
    assert.deepEqual(await post(url, { 'webhook-id': '1' }, body, never), { kind: 'delivered' });
    const [webhook] = receiver.received;
    assert.deepEqual([webhook?.method, webhook?.path, webhook?.body], ['POST', '/hook?x=1', body.toString()]);
    assert.equal(webhook?.headers['webhook-id'], '1');
    assert.equal(webhook?.headers['content-length'], String(body.length));
  });

  for (const [status, kind] of [
    [200, 'delivered'],
    [299, 'delivered'],
    [301, 'failed'],
    [302, 'failed'],
    [308, 'failed'],
    [400, 'failed'],
    [410, 'gone'],
    [500, 'failed'],
    [599, 'failed'],
  ] as const)
    test(`${status} means: ${kind}`, async (t) => {
      const receiver = await startWebhookReceiver(t);
      const target = await startWebhookReceiver(t);
      const location = `http://127.0.0.1:${target.port}/`;
      receiver.answerWith((response) => response.writeHead(status, { location }).end());
      const result = await post(new URL(`http://127.0.0.1:${receiver.port}/`), {}, body, never);
      assert.equal(result.kind, kind);
      assert.ok(!JSON.stringify(result).includes(String(status)));
      assert.equal(target.connections(), 0);
    });

  test('asks for the server name, and checks the certificate for it', async (t) => {
    const receiver = await startWebhookReceiver(t, tppCertificate);
    const [named, other] = ['tpp.example', 'other.example'].map(
      (name) => new URL(`https://${name}:${receiver.port}/`),
    );
    assert.ok(named && other);
    assert.deepEqual(await post(named, {}, body, never), { kind: 'delivered' });
    assert.equal(receiver.received[0]?.serverName, 'tpp.example');
    assert.equal(receiver.received[0]?.headers.host, `tpp.example:${receiver.port}`);

    const failed = await post(other, {}, body, never);
    assert.deepEqual(failed, { kind: 'failed', why: 'no connection (ERR_TLS_CERT_ALTNAME_INVALID)' });
    assert.equal(receiver.received.length, 1);
  });

  test('refuses a certificate of an unknown authority', async (t) => {
    const stranger = createAuthority(t, 'stranger').issue('tpp', {
      extensions: 'subjectAltName = DNS:tpp.example',
    });
    const receiver = await startWebhookReceiver(t, stranger);
    const result = await post(new URL(`https://tpp.example:${receiver.port}/`), {}, body, never);
    assert.equal(result.kind, 'failed');
    assert.equal(receiver.received.length, 0);
  });

  for (const addresses of [
    ['127.0.0.1'],
    ['8.8.8.8', '127.0.0.1'],
    ['::ffff:127.0.0.1'],
    ['::1'],
    ['0.0.0.0'],
  ])
    test(`opens no connection if the name leads to ${addresses.join(' and ')}`, async (t) => {
      const receiver = await startWebhookReceiver(t, tppCertificate);
      const postStrictly = createPost(resolvesTo(...addresses), { allowPrivate: [] });
      const result = await postStrictly(new URL(`https://tpp.example:${receiver.port}/`), {}, body, never);
      assert.equal(result.kind, 'failed');
      assert.match(result.kind === 'failed' ? result.why : '', /not on the Internet.*allowPrivate/);
      assert.equal(receiver.connections(), 0);
    });

  test('connects to the address that it has checked: the name is resolved once for each attempt', async (t) => {
    const receiver = await startWebhookReceiver(t, tppCertificate);
    let calls = 0;
    const rebinding: ResolveName = async () => (++calls === 1 ? ['127.0.0.1'] : ['127.0.0.2']);
    const postOnce = createPost(rebinding, { allowPrivate: ['127.0.0.1'] });
    const url = new URL(`https://tpp.example:${receiver.port}/`);
    assert.deepEqual(await postOnce(url, {}, body, never), { kind: 'delivered' });
    assert.equal(calls, 1);
    assert.equal((await postOnce(url, {}, body, never)).kind, 'failed');
    assert.equal(receiver.connections(), 1);
  });

  test('uses the next address if the first one does not accept connections', async (t) => {
    const receiver = await startWebhookReceiver(t, tppCertificate);
    const postToBoth = createPost(resolvesTo('127.0.0.2', '127.0.0.1'));
    const url = new URL(`https://tpp.example:${receiver.port}/`);
    assert.deepEqual(await postToBoth(url, {}, body, never), { kind: 'delivered' });
  });

  for (const [what, resolveName] of [
    ['has no address', resolvesTo()],
    ['cannot be resolved', () => Promise.reject(new Error('SERVFAIL'))],
  ] as const)
    test(`fails if the name ${what}`, async () => {
      const result = await createPost(resolveName)(new URL('https://tpp.example/'), {}, body, never);
      assert.equal(result.kind, 'failed');
    });

  test('gives up after the time limit, whether the endpoint or the name server does not answer', async (t) => {
    const receiver = await startWebhookReceiver(t);
    receiver.answerWith(() => {});
    const url = new URL(`http://127.0.0.1:${receiver.port}/`);
    const impatient = createPost(resolvesTo('127.0.0.1'), { timeoutMs: 100 });
    const expected = { kind: 'failed', why: 'no response within 0.1 s' };
    assert.deepEqual(await impatient(url, {}, body, never), expected);

    const silent: ResolveName = (_name, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    const unresolved = createPost(silent, { timeoutMs: 100 });
    assert.deepEqual(await unresolved(new URL('https://tpp.example/'), {}, body, never), expected);
  });

  test('gives up an endless head and an endless body', async (t) => {
    const drip = (text: string) =>
      createServer((socket) => {
        socket.on('error', () => {});
        const timer = setInterval(() => socket.write(text), 1);
        socket.write('HTTP/1.1 200 OK\r\n');
        socket.on('close', () => clearInterval(timer));
      });
    for (const [text, kind, timeoutMs] of [
      ['x: y\r\n', 'failed', 2_000],
      [`\r\n${'x'.repeat(65_536)}`, 'delivered', 300_000],
    ] as const) {
      let open = 0;
      const server = drip(text);
      server.on('connection', (socket) => {
        open += 1;
        socket.on('close', () => {
          open -= 1;
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      t.after(() => server.close());
      const address = server.address();
      const port = typeof address === 'object' ? address?.port : 0;
      const result = await createPost(resolvesTo(), { timeoutMs })(
        new URL(`http://127.0.0.1:${port}/`),
        {},
        body,
        never,
      );
      assert.equal(result.kind, kind);
      await until(5_000, 'the connection is closed', () => open === 0);
    }
  });

  /** A server that writes this text when a request arrives, and leaves the connection open. @returns its URL, and how many are open */
  async function startRawServer(t: TestContext, text: string, thenEnd = false) {
    let open = 0;
    const server = createServer((socket) => {
      open += 1;
      socket.on('error', () => {});
      socket.on('close', () => {
        open -= 1;
      });
      socket.once('data', () => (thenEnd ? socket.end(text) : socket.write(text)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    return { url: new URL(`http://127.0.0.1:${port}/`), open: () => open };
  }

  for (const [what, text, thenEnd, expected] of [
    [
      'changes the protocol',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
      false,
      'failed',
    ],
    ['answers 101 without a protocol', 'HTTP/1.1 101 x\r\n\r\n', false, 'failed'],
    ['answers 101 and closes', 'HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', true, 'failed'],
    ['sends early hints only, and closes', 'HTTP/1.1 103 x\r\nlink: x\r\n\r\n', true, 'failed'],
    ['closes the connection', '', true, 'failed'],
    ['sends no HTTP', 'SSH-2.0-OpenSSH_9\r\n', false, 'failed'],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nok', true, 'delivered'],
    ['sends two responses', 'HTTP/1.1 204 x\r\n\r\nHTTP/1.1 410 Gone\r\n\r\n', false, 'delivered'],
    ['closes in the body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\no', true, 'delivered'],
    ['never ends the body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\no', false, 'delivered'],
  ] as const)
    test(`ends the attempt, after its connection, if the endpoint ${what}`, async (t) => {
      const server = await startRawServer(t, text, thenEnd);
      const result = await within(10_000, 'the attempt ends', post(server.url, {}, body, never));
      assert.equal(result.kind, expected);
      await until(5_000, 'the connection is closed', () => server.open() === 0);
    });

  for (const [what, text] of [
    ['interim responses', 'HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n'],
    ['empty lines', '\r\n'],
  ] as const)
    test(`ends the attempt if the endpoint sends ${what} only`, async (t) => {
      const server = await startRawServer(t, text.repeat(100_000));
      const result = await post(server.url, {}, body, never);
      assert.deepEqual(result, { kind: 'failed', why: 'the response of the endpoint is too long' });
      await until(5_000, 'the connection is closed', () => server.open() === 0);
    });

  test('checks certificates although the environment switches that off', async (t) => {
    const stranger = createAuthority(t, 'stranger').issue('tpp', {
      extensions: 'subjectAltName = DNS:tpp.example',
    });
    const receiver = await startWebhookReceiver(t, stranger);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const result = await post(new URL(`https://tpp.example:${receiver.port}/`), {}, body, never);
    assert.equal(result.kind, 'failed');
    assert.equal(receiver.received.length, 0);
  });

  test('stops when it is interrupted', async (t) => {
    const receiver = await startWebhookReceiver(t);
    const interrupt = new AbortController();
    receiver.answerWith(() => interrupt.abort());
    const result = await post(new URL(`http://127.0.0.1:${receiver.port}/`), {}, body, interrupt.signal);
    assert.deepEqual(result, { kind: 'failed', why: 'the attempt was interrupted' });
  });
});
