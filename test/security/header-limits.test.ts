import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertCutOff, assertServes, refusalOf, statusRead, valuesAtBank } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { onConnection, sendRaw } from '../kit/raw.ts';

const many = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: v`);

/*
 * The story: a server that keeps only the first so many fields drops the others without a word. The attacker fills
 * the head up, so that the gateway checks one half of it and the bank acts on the other.
 */
describe('a head that is too large', () => {
  test('A12: more than 100 fields are refused, not dropped', async (t) => {
    const line = await startLine(t);
    await assertCutOff(line, statusRead(...many(99)), [431, 'HEADERS_TOO_LARGE']);
    await assertCutOff(line, statusRead(...many(2500)), [431, 'HEADERS_TOO_LARGE']);
    await assertServes(line);
  });

  test('A12: 100 fields all reach the bank', async (t) => {
    const line = await startLine(t);
    await sendRaw(line.gateway.port, statusRead(...many(98)));
    for (const index of [0, 97]) assert.deepEqual(valuesAtBank(line, `x-${index}`), ['v']);
  });

  test('A12: more than 16 KiB are refused', async (t) => {
    const line = await startLine(t);
    await assertCutOff(line, statusRead(`X-A: ${'a'.repeat(17 * 1024)}`), [431, 'HEADERS_TOO_LARGE']);
    await assertServes(line);
  });

  test('A12: a TPP that goes on sending still gets to read why it was refused', async (t) => {
    const { bank, gateway } = await startLine(t);
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
});
