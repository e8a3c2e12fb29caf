import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AttackTarget, assertServes, initiation, refusalOf, requestText } from '../kit/attack.ts';
import { type Sections, startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';

const small: Sections = { listen: { maxBody: '64KiB' } };
const piece = 'x'.repeat(16 * 1024);
const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;

/** Sends the head and the parts, like a TPP that reads no response before it has sent everything. */
async function assertTooLarge(
  { gateway }: AttackTarget,
  head: string,
  part: string,
  parts: number,
): Promise<void> {
  await onConnection(gateway.port, async (connection) => {
    connection.send(head);
    for (let sent = 0; sent < parts; sent++) connection.send(part);
    const response = await connection.answer();
    assert.deepEqual(refusalOf(response), [413, 'BODY_TOO_LARGE']);
    assert.equal(response.headers.get('connection'), 'close');
    await connection.closed();
  });
}

/*
 * Attack: the attacker sends more than any payment contains, to fill the memory of the gateway or the disks of the bank; or
 * it announces an extreme length and sends nothing.
 */
describe('a body that exceeds the limit', () => {
  test('E5: is refused when it is announced, and a TPP that sends all of it can read the refusal', async (t) => {
    const line = await startGatewayWithBank(t, small);
    const size = 64 * piece.length;
    await assertTooLarge(line, initiation('', `Content-Length: ${size}`), piece, 64);
    assert.equal(line.bank.requests.length, 0);
    await assertServes(line);
  });

  test('E5: is refused when it is announced, even if it is never sent', async (t) => {
    const line = await startGatewayWithBank(t, small);
    for (const length of ['65537', '999999999999999']) {
      await assertTooLarge(line, initiation('', `Content-Length: ${length}`), '', 0);
    }
    assert.equal(line.bank.requests.length, 0);
  });

  test('E5: in chunks is refused when the limit is reached', async (t) => {
    const line = await startGatewayWithBank(t, small);
    await assertTooLarge(line, initiation('', 'Transfer-Encoding: chunked'), chunk, 5);
    await assertTooLarge(line, initiation('', 'Transfer-Encoding: chunked'), chunk, 64);
    await assertTooLarge(
      line,
      initiation('', 'Transfer-Encoding: chunked'),
      '1;extended=yes\r\nx\r\n'.repeat(1_000),
      70,
    );
    assert.equal(line.bank.requests.length, 0);
    await assertServes(line);
  });

  test('E5: is not one of exactly the limit, which is forwarded', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, small);
    const whole = piece.repeat(4);
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation(whole, `Content-Length: ${whole.length}`));
      connection.send(initiation(`${chunk.repeat(4)}0\r\n\r\n`, 'Transfer-Encoding: chunked'));
      for (const _ of [1, 2])
        assert.equal((await connection.answer()).headers.get('penstock-error'), undefined);
    });
    assert.deepEqual(
      bank.requests.map(({ body }) => body.length),
      [whole.length, whole.length],
    );
  });

  test('E5: is discarded behind any other refusal, which the TPP can read', async (t) => {
    const line = await startGatewayWithBank(t, small);
    await onConnection(line.gateway.port, async (connection) => {
      connection.send(requestText('POST /nowhere HTTP/1.1', [`Content-Length: ${32 * piece.length}`]));
      for (let sent = 0; sent < 32; sent++) connection.send(piece);
      assert.deepEqual(refusalOf(await connection.answer()), [404, 'PATH_UNKNOWN']);
      await connection.closed();
    });
    assert.equal(line.bank.requests.length, 0);
  });
});

/*
 * Not an attack, but similar: a bank with a lower limit refuses the body and stops reading while it is being sent.
 */
describe('a bank that refuses a body before it has read it', () => {
  test('E10: has its 413 passed on to the TPP', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    bank.injectFault({ name: 'status', status: 413, strikes: 'before-reading' });
    const body = piece.repeat(60);
    await onConnection(gateway.port, async (connection) => {
      connection.send(initiation(body, `Content-Length: ${body.length}`));
      assert.deepEqual(refusalOf(await connection.answer()), [413, 'none']);
    });
    assert.equal(bank.requests.length, 1);
  });
});
