import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { assertServes, initiation, refusalOf, requestText, statusRead } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw.ts';

const slowly = { name: 'latency', ms: 150, strikes: 'before-effect' } as const;

/*
 * The story: an attacker sends several requests at once on a connection that a proxy shares among TPPs. If one answer
 * overtakes another, or one is left out, every later answer on that connection goes to the wrong TPP.
 */
describe('requests sent before the answers to earlier ones', () => {
  test('A8: are answered in order, however long the first takes', async (t) => {
    const { bank, gateway } = await startLine(t);
    bank.injectFault(slowly, { times: 1 });
    const requests = [
      statusRead(),
      requestText('GET /nowhere HTTP/1.1'),
      initiation('{}', 'Content-Length: 2'),
    ];
    await onConnection(gateway.port, async (connection) => {
      connection.send([...requests, statusRead('Penstock-Environment: nowhere')].join(''));
      for (const bytes of requests) {
        const { headers } = await connection.answer();
        assert.equal(headers.get('x-request-id'), /X-Request-ID: (\S+)/.exec(bytes)?.[1]);
      }
      assert.equal((await connection.answer()).status, 400);
    });
    assert.equal(bank.requests.length, 2);
  });

  const behind: Readonly<Record<string, string>> = {
    'what is not HTTP': 'NONSENSE\r\n\r\n',
    'doubtful framing': requestText('POST /x HTTP/1.1', ['Content-Length: 1', 'Content-Length: 2']),
    'a version nobody speaks': requestText('GET /x HTTP/7.7'),
    'too large a head': requestText('GET /x HTTP/1.1', [`X-A: ${'a'.repeat(17_000)}`]),
    'a wish for a tunnel': requestText('CONNECT bank.example:443 HTTP/1.1'),
    'a head that breaks off': 'GET /x HTT',
  };
  for (const [name, bytes] of Object.entries(behind)) {
    test(`A8: a good one gets its answer first, with ${name} behind it; then the connection is closed`, async (t) => {
      const line = await startLine(t);
      line.bank.injectFault(slowly, { times: 1 });
      await onConnection(line.gateway.port, async (connection) => {
        connection.send(statusRead() + bytes);
        if (name.includes('breaks off')) connection.end();
        assert.equal((await connection.answer()).headers.get('penstock-error'), undefined);
        await connection.closed();
        assert.match(connection.unread(), /^$|^HTTP\/1\.1 4\d\d .*Connection: close\r\n/s);
      });
      assert.equal(line.bank.requests.length, 1);
      await assertServes(line);
    });
  }

  test('A8: nothing is served behind an answer that says it is the last one', async (t) => {
    const { bank, gateway } = await startLine(t);
    await onConnection(gateway.port, async (connection) => {
      const refused = requestText('POST /nowhere HTTP/1.1', ['Transfer-Encoding: chunked']);
      connection.send(refused);
      const answer = await connection.answer();
      assert.deepEqual(refusalOf(answer), [404, 'PATH_UNKNOWN']);
      assert.equal(answer.headers.get('connection'), 'close');
      connection.send(`0\r\n\r\n${initiation('{}', 'Content-Length: 2')}`);
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(bank.requests.length, 0);
  });

  test('A8: a flood of broken bytes behind a slow request is told once, and nothing leaks', async (t) => {
    const warnings: Error[] = [];
    const hear = (warning: Error) => void warnings.push(warning);
    process.on('warning', hear);
    t.after(() => process.off('warning', hear));
    const line = await startLine(t);
    line.bank.injectFault(slowly, { times: 1 });
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(statusRead());
      await line.bank.waitUntil(() => line.bank.requests.length === 1);
      for (let pieces = 0; pieces < 50; pieces++) {
        connection.send('NONSENSE\r\n\r\n');
        await setImmediate(); // a packet of its own
      }
      assert.equal((await connection.answer()).headers.get('penstock-error'), undefined);
      await connection.closed();
    });
    assert.deepEqual(warnings, []);
    assert.ok(line.gateway.logLines.length < 5);
    await assertServes(line);
  });
});
