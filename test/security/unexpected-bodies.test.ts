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
import { startLine } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw.ts';

/*
 * The story: some servers ignore the body of a GET or DELETE, and take its bytes for the next request. The attacker
 * writes a payment into the body of a harmless read: checked here as bytes, carried out there as a request.
 */
describe('a body where none belongs', () => {
  const hidden = initiation('{}', 'Content-Length: 2');

  test('A11: is refused, and neither it nor what follows is taken for a request', async (t) => {
    const line = await startLine(t);
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

  test('A11: a read that says its body is empty is served', async (t) => {
    const line = await startLine(t);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(statusRead('Content-Length: 0'));
      assert.equal((await connection.answer()).headers.get('penstock-error'), undefined);
    });
    assert.equal(line.bank.requests.length, 1);
  });

  test('A11: a request hidden in the body of a payment is bytes, and only bytes', async (t) => {
    const { bank, gateway } = await startLine(t);
    const half = `${hidden}GET /smuggled HTTP/1.1\r\nX: `;
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation(half, `Content-Length: ${half.length}`) + statusRead());
      await connection.answer();
      await connection.answer();
    });
    assert.deepEqual(bank.requests.map(({ method }) => method).toSorted(), ['GET', 'POST']);
    assert.equal(bank.requests.find(({ method }) => method === 'POST')?.body.toString(), half);
  });

  test('A11: nor is one hidden in the body of a request that was refused', async (t) => {
    const line = await startLine(t);
    const refused = requestText('POST /nowhere HTTP/1.1', [`Content-Length: ${hidden.length}`], hidden);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(refused);
      assert.equal((await connection.answer()).status, 404);
    });
    assert.equal(line.bank.requests.length, 0);
    await assertServes(line);
  });
});
