import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { bankResponse, startApp } from '../contract/tpp-app-fixture.ts';
import { assertServes } from '../kit/attack.ts';
import { startLine } from '../kit/gateway.ts';
import { startDoor } from '../kit/plain-door.ts';
import { onConnection } from '../kit/raw.ts';
import { type Conversation, conversation } from '../kit/wild-bytes.ts';

/** How many conversations there are; each has two requests on average. */
const runs = Number(process.env.FUZZ_RUNS ?? 5_500);
/** How many of them are held at the same time. */
const atOnce = 25;
const seed = process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) };

/** What the bank may see at most, written apart from the gateway's own table. */
const shapes: readonly RegExp[] = [
  /^POST (payments|bulk-payments|periodic-payments)\/[\w.~-]+$/,
  /^GET (payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+$/,
  /^DELETE (payments|bulk-payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+$/,
  /^GET (payments|bulk-payments|periodic-payments)\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/status$/,
  /^(GET|POST) [a-z-]+\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/(cancellation-)?authorisations$/,
  /^GET [a-z-]+\/[\w.~-]+\/[\w.~=:@+,!$*-]+\/(cancellation-)?authorisations\/[\w.~=:@+,!$*-]+$/,
];

function assertOneOfTheEight(method: string, url: string): void {
  assert.ok(url.startsWith('/berlingroup/v1/'), url);
  const text = `${method} ${url.slice('/berlingroup/v1/'.length)}`;
  assert.ok(shapes.some((shape) => shape.test(text)) && !/\/\.{1,2}(\/|$)/.test(url), text);
}

const crowdOf = (size: number) => fc.array(conversation, { minLength: size, maxLength: size });

/** What comes back on each connection until the gateway has closed it. */
const hold = (port: number, crowd: readonly Conversation[], last: 'end' | 'wait') =>
  Promise.all(
    crowd.map(({ packets }) =>
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
 * The story: the attacker knows something that we do not, and has a machine try all the rest.
 */
describe('bytes that nobody thought of', () => {
  test('are answered or hung up on, never crash the gateway, and reach the bank as one of the eight or not at all', async (t) => {
    const line = await startLine(t);
    const count = { sent: 0, reached: 0 };
    const property = fc.asyncProperty(crowdOf(atOnce), async (crowd) => {
      line.bank.reset();
      await hold(line.gateway.port, crowd, 'end');
      for (const { method: sent, url, bodyComplete } of line.bank.requests) {
        assertOneOfTheEight(sent, url);
        assert.ok(bodyComplete, 'half a request reached the bank');
      }
      assert.equal(line.bank.malformed, 0, 'the bank was sent what is no HTTP');
      count.reached += line.bank.requests.length;
      count.sent += crowd.reduce((sum, { requests }) => sum + requests, 0);
    });
    await fc.assert(property, { numRuns: Math.ceil(runs / atOnce), ...seed });
    t.diagnostic(`${count.sent} requests, ${count.reached} of them good enough for the bank`);
    assert.ok(count.reached > runs / 10, `only ${count.reached} requests were good enough for the bank`);
    assert.ok(
      line.gateway.logLines.every((text) => !text.includes('INTERNAL')),
      'a fault of our own',
    );
    await assertServes(line);
  });

  test('are never waited for beyond the limits, if those who sent them just wait', async (t) => {
    const { app } = startApp(async () => bankResponse());
    const { port } = await startDoor(t, app, { keepAliveTimeout: 100 });
    let held = 0;
    const property = fc.asyncProperty(crowdOf(200), async (crowd) => {
      for (const said of await hold(port, crowd, 'wait')) assert.notEqual(said, '', 'closed without a word');
      held += crowd.length;
    });
    await fc.assert(property, { numRuns: Math.ceil(runs / 1_500), ...seed, endOnFailure: true }); // each try takes a second
    t.diagnostic(`${held} connections`);
  });
});
