import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { assertCutOff, assertServes, refusalOf, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw-connection.ts';
import { within } from '../kit/within.ts';

const fields = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: v`);

/*
 * Attack: a server that keeps a limited number of fields silently drops the others. The attacker fills the head, so that
 * the gateway checks one part of it and the bank uses the other.
 */
describe('the limits of a request head', () => {
  test('A12: refuse more than 100 fields instead of dropping some', async (t) => {
    const line = await startGatewayWithBank(t);
    await assertCutOff(line, statusRead(...fields(99)), [431, 'HEADERS_TOO_LARGE']);
    await assertCutOff(line, statusRead(...fields(2500)), [431, 'HEADERS_TOO_LARGE']);
    await assertServes(line);
  });

  test('A12: let 100 fields reach the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    await sendRaw(line.gateway.port, statusRead(...fields(98)));
    for (const index of [0, 97]) assert.deepEqual(valuesAtBank(line, `x-${index}`), ['v']);
  });

  test('A12: refuse more than 16 KiB', async (t) => {
    const line = await startGatewayWithBank(t);
    await assertCutOff(line, statusRead(`X-A: ${'a'.repeat(17 * 1024)}`), [431, 'HEADERS_TOO_LARGE']);
    await assertServes(line);
  });

  test('A12: let a TPP that continues to send read the refusal', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    await onConnection(gateway.port, async (connection) => {
      const piece = 'a'.repeat(64 * 1024);
      connection.send(statusRead().replace('\r\n\r\n', `\r\nX-A: ${piece}`));
      const answer = connection.answer();
      for (let pieces = 0; pieces < 64; pieces++) connection.send(piece);
      assert.deepEqual(refusalOf(await answer), [431, 'HEADERS_TOO_LARGE']);
      await connection.closed();
    });
    assert.equal(bank.requests.length, 0);
  });

  test('A12: do not reset the connection of a TPP that continues to send behind the refusal', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const socket = connect({ port: gateway.port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => socket.destroy());
    const errors: string[] = [];
    socket.on('error', ({ message }) => void errors.push(message));
    const refusal = text(socket);
    const piece = 'a'.repeat(17 * 1024);
    socket.write(statusRead().replace('\r\n\r\n', `\r\nX-A: ${piece}`));
    assert.match(await within(5_000, 'the refusal', refusal), /^HTTP\/1\.1 431 .*Connection: close\r\n/s);
    for (let pieces = 0; pieces < 20; pieces++) {
      await new Promise((written) => socket.write(piece, written));
      await setImmediate(); // a packet of its own
    }
    socket.end();
    await within(5_000, 'the end of the connection', once(socket, 'close'));
    assert.deepEqual(errors, []);
    assert.equal(bank.requests.length, 0);
  });
});
