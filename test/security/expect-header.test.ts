import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertCutOff,
  assertRefused,
  assertServes,
  initiation,
  refusalOf,
  statusRead,
  valuesAtBank,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

/*
 * Attack: some proxies handle a request with Expect: 100-continue in a separate code path that skips all checks. One field
 * then switches the protection off.
 */
describe('a request with Expect', () => {
  test('C7: gets 100 Continue, and all rules apply to it', async (t) => {
    const line = await startGatewayWithBank(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(
        initiation('', 'Content-Length: 2', 'Expect: 100-Continue', 'X-Forwarded-For: 10.0.0.1'),
      );
      await until(
        2_000,
        '100 Continue is received',
        () => connection.unread() === 'HTTP/1.1 100 Continue\r\n\r\n',
      );
      assert.equal(line.bank.requests.length, 0);
      connection.send('{}');
      assert.equal((await connection.answer()).status, 201);
    });
    for (const name of ['expect', 'x-forwarded-for']) assert.deepEqual(valuesAtBank(line, name), []);
    assert.equal(line.bank.requests.at(-1)?.body.toString(), '{}');
  });

  test('C7: is refused before 100 Continue if the head is sufficient for a refusal', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { listen: { maxBody: '1KiB' } });
    const expect = 'Expect: 100-continue';
    const refused: readonly (readonly [string, number])[] = [
      [initiation('', 'Content-Length: 1025', expect), 413],
      [initiation('', 'Content-Length: 2', expect).replace('/berlingroup', '/elsewhere'), 404],
      [initiation('', 'Content-Length: 2', expect).replace(/X-Request-ID.*\r\n/, ''), 400],
      [initiation('', 'Content-Length: 2', expect, 'Authorization: a', 'Authorization: b'), 400],
      [statusRead('Content-Length: 2', expect), 400],
    ];
    for (const [bytes, status] of refused) {
      await onConnection(gateway.port, async (connection) => {
        connection.send(bytes);
        await connection.closed();
        assert.match(connection.unread(), new RegExp(`^HTTP/1\\.1 ${status} `));
      });
    }
    assert.equal(bank.requests.length, 0);
  });

  test('C7: of anything else is refused with 417', async (t) => {
    const line = await startGatewayWithBank(t);
    for (const other of ['200-ok', '100-continue, gzip', '100-continue;q=1', '101-continue', '']) {
      const bytes = initiation('{}', 'Content-Length: 2', `Expect: ${other}`);
      await assertCutOff(line, bytes, [417, 'EXPECTATION_FAILED']);
    }
    await assertServes(line);
  });

  test('C7: gets no 100 Continue in HTTP/1.0, which has no interim responses', async (t) => {
    const { gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      connection.send(
        initiation('{}', 'Content-Length: 2', 'Expect: 100-continue').replace('HTTP/1.1', 'HTTP/1.0'),
      );
      await connection.closed();
      assert.match(connection.unread(), /^HTTP\/1\.1 201 /);
    });
  });

  test('C7: is answered normally if it has no body', async (t) => {
    const line = await startGatewayWithBank(t);
    const answer = await sendRaw(line.gateway.port, statusRead('Expect: 100-continue'));
    assert.deepEqual(refusalOf(answer), [404, 'none']);
    await assertRefused(line, statusRead('Expect: 100-continue', 'Host: b'), [400, 'HEADER_MALFORMED']);
  });
});
