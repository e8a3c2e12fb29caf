import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { bankResponse, startApp } from '../contract/tpp-app-fixture.ts';
import { assertServes } from '../kit/attack.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { startPlainListener } from '../kit/plain-listener.ts';
import { type Conversation, randomConversation } from '../kit/random-bytes.ts';
import { onConnection } from '../kit/raw-connection.ts';
import { seededRuns } from '../kit/seeded-runs.ts';

/** Number of conversations; each has two requests on average. */
const runs = Number(process.env.FUZZ_RUNS ?? 2_500);
/** Number of conversations at the same time. */
const atOnce = 25;

/** The request lines that may reach the bank, independent of the gateway's own table. */
const allowedRequests: readonly RegExp[] = [
  /^POST (payments|bulk-payments|periodic-payments)\/[\w.~-]+$/,
  /^GET (payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+$/,
  /^DELETE (payments|bulk-payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+$/,
  /^GET (payments|bulk-payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/status$/,
  /^(GET|POST) [a-z-]+\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/(cancellation-)?authorisations$/,
  /^GET [a-z-]+\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/(cancellation-)?authorisations\/[\w.~=:@+,!$*-]+$/,
];

function assertOneOfTheEight(method: string, url: string): void {
  assert.ok(url.startsWith('/berlingroup/v1/'), url);
  const [path = '', query] = url.split(/\?(.*)/s, 2);
  const text = `${method} ${path.slice('/berlingroup/v1/'.length)}`;
  assert.ok(allowedRequests.some((shape) => shape.test(text)) && !/\/\.{1,2}(\/|$)/.test(path), text);
  assert.match(query ?? '', /^(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9a-f]{2}){0,1024}$/i);
}

const conversations = (size: number) => fc.array(randomConversation, { minLength: size, maxLength: size });

/** The bytes that are received on each connection until the gateway closes it. */
const play = (port: number, list: readonly Conversation[], last: 'end' | 'wait') =>
  Promise.all(
    list.map(({ packets }) =>
      onConnection(port, async (connection) => {
        for (const packet of packets) connection.send(packet);
        if (last === 'end') connection.end();
        await connection.closed();
        assert.match(connection.unread(), /^$|^HTTP\/1\.1 [1-5]\d\d /);
        return connection.unread();
      }),
    ),
  );

/*
 * Attack: random variations of requests, for attacks that no other test contains.
 */
describe('random bytes', () => {
  test('get an error response or a closed connection, and only the eight operations reach the bank', async (t) => {
    const line = await startGatewayWithBank(t);
    const count = { sent: 0, reached: 0 };
    const property = fc.asyncProperty(conversations(atOnce), async (list) => {
      line.bank.reset();
      await play(line.gateway.port, list, 'end');
      for (const { method: sent, url, bodyComplete } of line.bank.requests) {
        assertOneOfTheEight(sent, url);
        assert.ok(bodyComplete, 'half a request reached the bank');
      }
      assert.equal(line.bank.malformed, 0, 'the bank received bytes that are not HTTP');
      count.reached += line.bank.requests.length;
      count.sent += list.reduce((sum, { requests }) => sum + requests, 0);
    });
    await fc.assert(property, seededRuns(t, Math.ceil(runs / atOnce)));
    t.diagnostic(`${count.sent} requests, ${count.reached} of them good enough for the bank`);
    assert.ok(count.reached > runs / 10, `only ${count.reached} requests were good enough for the bank`);
    assert.ok(
      line.gateway.logLines.every((text) => !text.includes('INTERNAL')),
      'an internal error was logged',
    );
    await assertServes(line);
  });

  test('are answered within the time limits if the client then only waits', async (t) => {
    const { app } = startApp(async () => bankResponse());
    const { port } = await startPlainListener(t, app, { keepAliveTimeout: 100 });
    let held = 0;
    const property = fc.asyncProperty(conversations(200), async (list) => {
      for (const received of await play(port, list, 'wait'))
        assert.notEqual(received, '', 'closed without a response');
      held += list.length;
    });
    await fc.assert(property, { ...seededRuns(t, Math.ceil(runs / 1_500)), endOnFailure: true }); // one run takes a second
    t.diagnostic(`${held} connections`);
  });
});
