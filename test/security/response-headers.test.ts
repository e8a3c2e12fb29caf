import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { bankResponse, startApp } from '../contract/tpp-app-fixture.ts';
import { initiation, refusalOf, requestText, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { sendRaw } from '../kit/raw-connection.ts';

/*
 * Attack: a text that the attacker controls, such as a name or a text of the bank, becomes the value of a response field
 * and contains a line end. Behind it is a field, or a complete response, of the attacker.
 */
describe('a line end in a response field', () => {
  test('C5: leads to a 500 without the injected field, and the next request is served', async (t) => {
    const texts = ['a\r\nX-Evil: b', 'a\nb', 'a\rb', 'a\0b', 'a\u{1f600}b'];
    let served = 0;
    const { app } = startApp(async () => bankResponse({ headers: [['X-A', texts[served++] ?? 'valid']] }));
    const { port } = await startPlainListener(t, app);
    const read = requestText('GET /berlingroup/v1/payments/p/1 HTTP/1.1');
    for (const text of texts) {
      const response = await sendRaw(port, read);
      assert.deepEqual(refusalOf(response), [500, 'INTERNAL'], JSON.stringify(text));
      assert.equal(response.headers.get('x-evil'), undefined);
    }
    assert.equal((await sendRaw(port, read)).status, 200);
  });
});

/*
 * Attack: the attacker reads the software and its version from the fields of a response.
 */
describe('a response of the gateway', () => {
  test('C9: has no field that names the software', async (t) => {
    const line = await startGatewayWithBank(t);
    const refused = await sendRaw(line.gateway.port, requestText('GET /nowhere HTTP/1.1'));
    for (const { headers } of [refused, await sendRaw(line.gateway.port, 'junk\r\n\r\n')])
      for (const name of ['server', 'x-powered-by', 'etag', 'via'])
        assert.equal(headers.get(name), undefined, name);
  });
});

/*
 * Attack: a few kilobytes that become gigabytes when they are decompressed.
 */
describe('a compressed request body', () => {
  test('E6: is sent to the bank unchanged and never decompressed', async (t) => {
    const line = await startGatewayWithBank(t);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const fields = ['Content-Encoding: gzip', `Content-Length: ${bomb.length}`];
    const before = process.memoryUsage().rss;
    const bytes = initiation(bomb.toString('latin1'), ...fields);
    await sendRaw(line.gateway.port, bytes);
    assert.deepEqual(valuesAtBank(line, 'content-encoding'), ['gzip']);
    assert.deepEqual(valuesAtBank(line, 'content-length'), [String(bomb.length)]);
    assert.ok(process.memoryUsage().rss - before < 48 * 1024 * 1024, 'the body was decompressed');
    assert.equal((await sendRaw(line.gateway.port, statusRead())).headers.get('penstock-error'), undefined);
  });
});
