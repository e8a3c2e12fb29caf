import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertCutOff,
  assertServes,
  initiation,
  paymentsPath,
  requestText,
  statusRead,
} from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';

/*
 * Attack: some servers ignore the body of a GET or DELETE and parse its bytes as the next request. The attacker puts a
 * payment into the body of a harmless read: here it is a body, there it is a request.
 */
describe('a request that is hidden in a body', () => {
  const hidden = initiation('{}', 'Content-Length: 2');

  test('A11: is refused in a GET or DELETE, and nothing behind it is parsed', async (t) => {
    const line = await startGatewayWithBank(t);
    const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
    for (const method of ['GET', 'DELETE']) {
      const requestLine = `${method} ${paymentsPath}/1 HTTP/1.1`;
      const plain = requestText(requestLine, [`Content-Length: ${hidden.length}`], hidden);
      const chunked = requestText(requestLine, ['Transfer-Encoding: chunked'], chunk);
      await assertCutOff(line, plain, [400, 'BODY_UNEXPECTED']);
      await assertCutOff(line, chunked, [400, 'BODY_UNEXPECTED']);
    }
    await assertServes(line);
  });

  test('A11: is not assumed for a read with Content-Length: 0, which is served', async (t) => {
    const line = await startGatewayWithBank(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(statusRead('Content-Length: 0'));
      assert.equal((await connection.answer()).headers.get('penstock-error'), undefined);
    });
    assert.equal(line.bank.requests.length, 1);
  });

  test('A11: is forwarded as part of the body of a payment', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const half = `${hidden}GET /smuggled HTTP/1.1\r\nX: `;
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation(half, `Content-Length: ${half.length}`) + statusRead());
      await connection.answer();
      await connection.answer();
    });
    assert.deepEqual(bank.requests.map(({ method }) => method).toSorted(), ['GET', 'POST']);
    assert.equal(bank.requests.find(({ method }) => method === 'POST')?.body.toString(), half);
  });

  test('A11: is not parsed in the body of a refused request', async (t) => {
    const line = await startGatewayWithBank(t);
    const refused = requestText('POST /nowhere HTTP/1.1', [`Content-Length: ${hidden.length}`], hidden);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(refused);
      assert.equal((await connection.answer()).status, 404);
    });
    assert.equal(line.bank.requests.length, 0);
    await assertServes(line);
  });
});
