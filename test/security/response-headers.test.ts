import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { bankResponse, startApp } from '../contract/tpp-app-fixture.ts';
import { initiation, refusalOf, requestText, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { startDoor } from '../kit/plain-door.ts';
import { sendRaw } from '../kit/raw.ts';

/*
 * The story: something that the attacker has a say in, a tenant's name or a text of the bank, ends up in a field of the
 * answer with a line end in it. Behind the line end stands a field, or a whole answer, of the attacker's own.
 */
describe('a line end in a field of an answer', () => {
  test('C5: is a 500 that shows nothing of it, and the next caller is served', async (t) => {
    const texts = ['a\r\nX-Evil: b', 'a\nb', 'a\rb', 'a\0b', 'a\u{1f600}b'];
    let answered = 0;
    const { app } = startApp(async () => bankResponse({ headers: [['X-A', texts[answered++] ?? 'well']] }));
    const { port } = await startDoor(t, app);
    const read = requestText('GET /berlingroup/v1/payments/p/1 HTTP/1.1');
    for (const text of texts) {
      const answer = await sendRaw(port, read);
      assert.deepEqual(refusalOf(answer), [500, 'INTERNAL'], JSON.stringify(text));
      assert.equal(answer.headers.get('x-evil'), undefined);
    }
    assert.equal((await sendRaw(port, read)).status, 200);
  });
});

/*
 * The story: the attacker reads from the fields of an answer which software it talks to, and in which version.
 */
describe('an answer', () => {
  test('C9: that the gateway gives names no software', async (t) => {
    const line = await startLine(t);
    const refused = await sendRaw(line.gateway.port, requestText('GET /nowhere HTTP/1.1'));
    for (const { headers } of [refused, await sendRaw(line.gateway.port, 'junk\r\n\r\n')])
      for (const name of ['server', 'x-powered-by', 'etag', 'via'])
        assert.equal(headers.get(name), undefined, name);
  });
});

/*
 * The story: a few kilobytes that become gigabytes when somebody unpacks them.
 */
describe('a compressed body', () => {
  test('E6: goes to the bank as it came, and is never unpacked', async (t) => {
    const line = await startLine(t);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const fields = ['Content-Encoding: gzip', `Content-Length: ${bomb.length}`];
    const before = process.memoryUsage().rss;
    const bytes = initiation(bomb.toString('latin1'), ...fields);
    await sendRaw(line.gateway.port, bytes);
    assert.deepEqual(valuesAtBank(line, 'content-encoding'), ['gzip']);
    assert.deepEqual(valuesAtBank(line, 'content-length'), [String(bomb.length)]);
    assert.ok(process.memoryUsage().rss - before < 48 * 1024 * 1024, 'it was unpacked somewhere');
    assert.equal((await sendRaw(line.gateway.port, statusRead())).headers.get('penstock-error'), undefined);
  });
});
