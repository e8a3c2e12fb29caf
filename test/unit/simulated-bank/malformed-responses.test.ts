/** Faults that answer, but not as they should. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { ask, jsonOrder, pathOf, pay, requestId, startedBank } from './kit.ts';
import { bodyIn, initiationBytes, talk } from './raw.ts';

describe('the status fault of the simulated bank', () => {
  test('sends tppMessages and the X-Request-ID, and executes nothing', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'status', status: 503, headers: { 'Retry-After': '7' } });

    const answer = await pay(bank);

    assert.equal(answer.status, 503);
    assert.equal(answer.headers['retry-after'], '7');
    assert.equal(answer.headers['x-request-id'], requestId);
    assert.equal(answer.json.tppMessages[0].code, 'SERVICE_UNAVAILABLE');
    assert.equal(bank.payments.length, 0);
  });

  test('sends the given header fields and body although the payment was created', async (t) => {
    const bank = await startedBank(t);
    const headers = { 'Content-Type': 'text/html', 'X-Request-ID': 'of the bank' };
    bank.injectFault({
      name: 'status',
      status: 504,
      headers,
      body: '<h1>Gateway</h1>',
      strikes: 'after-effect',
    });

    const answer = await pay(bank);

    assert.equal(answer.status, 504);
    assert.equal(answer.headers['content-type'], 'text/html');
    assert.equal(answer.headers['x-request-id'], 'of the bank');
    assert.equal(answer.text, '<h1>Gateway</h1>');
    assert.equal(bank.payments.length, 1);
  });

  test('can respond before the body is read', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'status', status: 413, strikes: 'before-reading' });
    const head = initiationBytes.slice(0, -jsonOrder.length);

    const { received } = await talk(bank, head, /}$/);

    assert.match(received, /^HTTP\/1\.1 413/);
  });

  test('sends Retry-After with a 429', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'too-many-requests', retryAfterSeconds: 3 });

    const answer = await pay(bank);

    assert.equal(answer.status, 429);
    assert.equal(answer.headers['retry-after'], '3');
    assert.equal(answer.json.tppMessages[0].code, 'ACCESS_EXCEEDED');
  });
});

describe('a response of the simulated bank', () => {
  test('can consist of bytes that are not HTTP, or of any given bytes', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'garbage' }, { times: 1 });
    bank.injectFault(
      { name: 'garbage', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n' },
      { times: 1 },
    );

    assert.match((await talk(bank, initiationBytes)).received, /^SSH-2\.0/);
    assert.match((await talk(bank, initiationBytes)).received, /Content-Length: -1/);
  });

  test('can have two contradicting Content-Length fields', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'two-content-lengths' });

    const { received } = await talk(bank, initiationBytes);

    const lengths = [...received.matchAll(/Content-Length: (\d+)/g)].map(([, length]) => length);
    assert.equal(new Set(lengths).size, 2);
  });

  test('can have a lone CR in a header field', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'carriage-return-in-header' });

    assert.match((await talk(bank, initiationBytes)).received, /X-Note: one\rX-Smuggled/);
  });

  test('can have a header block of 40 KB', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'huge-headers' });

    const { received } = await talk(bank, initiationBytes);

    assert.ok(received.indexOf('\r\n\r\n') >= 40 * 1024);
  });

  test('can be followed by an unsolicited second response', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'two-answers' });

    const { received } = await talk(bank, initiationBytes, /ACCC"}$/);

    assert.equal(received.match(/HTTP\/1\.1 20[01]/g)?.length, 2);
  });

  test('can be an unsolicited 101 Switching Protocols', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'switching-protocols' });

    const { received, end } = await talk(bank, initiationBytes, /\r\n\r\n$/);

    assert.match(received, /^HTTP\/1\.1 101 Switching Protocols/);
    assert.equal(end, 'open');
  });

  test('can be preceded by interim responses', async (t) => {
    const bank = await startedBank(t);
    bank.injectFault({ name: 'interim-answers' });

    const { received } = await talk(bank, initiationBytes, /}}}$/);

    assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 100', 'HTTP/1.1 103', 'HTTP/1.1 201']);
  });

  test('can be huge and valid JSON, with Content-Length or chunked', async (t) => {
    for (const framing of ['content-length', 'chunked'] as const) {
      const bank = await startedBank(t);
      bank.injectFault({ name: 'huge-answer', bytes: 3_000_001, framing });

      const answer = await pay(bank);

      assert.equal(answer.body.length, 3_000_001);
      assert.match(answer.json.paymentId, /^bank-/);
      assert.equal(answer.headers['content-length'], framing === 'chunked' ? undefined : '3000001');
    }
  });

  test('can be compressed with gzip, valid or corrupt', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    bank.injectFault({ name: 'gzip-answer' }, { times: 1 });
    bank.injectFault({ name: 'corrupt-gzip-answer' }, { times: 1 });
    const accept = { headers: { Accept: 'application/json' } };

    const good = await talkStatus();
    const broken = await talkStatus();

    assert.match(gunzipSync(good).toString(), /"transactionStatus":"RCVD"/);
    assert.throws(() => gunzipSync(broken));

    async function talkStatus() {
      const bytes = `GET ${pathOf(json.paymentId)}/status HTTP/1.1\r\nHost: bank\r\nConnection: close\r\nX-Request-ID: ${requestId}\r\nAccept: ${accept.headers.Accept}\r\n\r\n`;
      const { received } = await talk(bank, bytes);
      assert.match(received, /Content-Encoding: gzip/);
      return Buffer.from(bodyIn(received), 'latin1');
    }
  });
});

test('the simulated bank responds normally after a fault was cleared', async (t) => {
  const bank = await startedBank(t);
  bank.injectFault({ name: 'garbage' });
  bank.clearFaults();

  assert.equal((await ask(bank, 'GET', pathOf('nobody'))).status, 404);
});
