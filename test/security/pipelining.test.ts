import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { assertServes, initiation, refusalOf, requestText, statusRead } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';

const slowBank = { name: 'latency', ms: 150, strikes: 'before-effect' } as const;

/*
 * Attack: the attacker sends several requests at once on a connection that a proxy shares among TPPs. If a response overtakes
 * another one or is missing, every later response on that connection goes to the wrong TPP.
 */
describe('pipelined requests', () => {
  test('A8: are answered in order, even if the first takes long', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault(slowBank, { times: 1 });
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

  const invalid: Readonly<Record<string, string>> = {
    'bytes that are not HTTP': 'NONSENSE\r\n\r\n',
    'ambiguous framing': requestText('POST /x HTTP/1.1', ['Content-Length: 1', 'Content-Length: 2']),
    'an unknown version': requestText('GET /x HTTP/7.7'),
    'a head that is too large': requestText('GET /x HTTP/1.1', [`X-A: ${'a'.repeat(17_000)}`]),
    'a CONNECT request': requestText('CONNECT bank.example:443 HTTP/1.1'),
    'a head that breaks off': 'GET /x HTT',
  };
  for (const [name, bytes] of Object.entries(invalid)) {
    test(`A8: are answered before the connection is closed because of ${name}`, async (t) => {
      const line = await startGatewayWithBank(t);
      line.bank.injectFault(slowBank, { times: 1 });
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

  test('A8: are not served behind a response with Connection: close', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      const refused = requestText('POST /nowhere HTTP/1.1', ['Transfer-Encoding: chunked']);
      connection.send(refused);
      const response = await connection.answer();
      assert.deepEqual(refusalOf(response), [404, 'PATH_UNKNOWN']);
      assert.equal(response.headers.get('connection'), 'close');
      connection.send(`0\r\n\r\n${initiation('{}', 'Content-Length: 2')}`);
      await connection.closed();
      assert.equal(connection.unread(), '');
    });
    assert.equal(bank.requests.length, 0);
  });

  test('A8: followed by many invalid packets are logged once, without a leak of listeners', async (t) => {
    const warnings: Error[] = [];
    const record = (warning: Error) => void warnings.push(warning);
    process.on('warning', record);
    t.after(() => process.off('warning', record));
    const line = await startGatewayWithBank(t);
    line.bank.injectFault(slowBank, { times: 1 });
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
