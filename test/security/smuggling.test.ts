import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AttackTarget, assertServes } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { bodies } from './smuggling/bodies.ts';
import { framing } from './smuggling/framing.ts';
import { heads } from './smuggling/heads.ts';
import { mark, type Payload } from './smuggling/payload.ts';

const corpus = [...framing, ...bodies, ...heads];

/** Sends one payload. @returns what went wrong */
async function play(
  { gateway, bank }: AttackTarget,
  { bytes, mayReach }: Payload,
): Promise<readonly string[]> {
  bank.reset();
  const received = await onConnection(gateway.port, async (connection) => {
    connection.send(bytes);
    connection.end();
    await connection.closed();
    return connection.unread();
  });
  const responses = received.match(/^HTTP\/1\.1 [2-5]\d\d /gm) ?? [];
  const { requests } = bank;
  return [
    requests.some(({ url }) => url.includes(mark)) ? 'the hidden request reached the bank' : [],
    requests.length !== mayReach ? `the bank received ${requests.length} requests` : [],
    requests.every(({ bodyComplete }) => bodyComplete) ? [] : 'the bank received half a request',
    bank.malformed > 0 ? 'the bank received bytes that are not HTTP' : [],
    responses.length > 1 ? `${responses.length} responses` : [],
    mayReach === 0 && /^HTTP\/1\.1 [23]/m.test(received) ? `it was accepted: ${responses}` : [],
  ].flat();
}

/*
 * Attack: the attacker sends bytes in which one parser finds one request and the next one finds two. The second request
 * bypasses all checks, on a connection that other TPPs use as well.
 */
describe('a request hidden in another one', () => {
  test('A1-A11, B1-B6, C2, C4, C8: never reaches the bank, for any payload of the corpus', async (t) => {
    const line = await startGatewayWithBank(t);
    const wrong: string[] = [];
    for (const payload of corpus) {
      wrong.push(...(await play(line, payload)).map((what) => `${payload.name}: ${what}`));
      await assertServes(line);
    }
    t.diagnostic(`${corpus.length} payloads, ${wrong.length} forwarded unsafely`);
    assert.deepEqual(wrong, []);
    assert.ok(corpus.length >= 150);
    assert.equal(
      new Set(corpus.map(({ name }) => name)).size,
      corpus.length,
      'two payloads have the same name',
    );
  });
});
