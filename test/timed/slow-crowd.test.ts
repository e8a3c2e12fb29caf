import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { initiation, newStatusPath, paymentsPath, requestText } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startBank } from '../kit/gateway.ts';
import { exchange, failuresIn, quantile, startLoad } from '../kit/load.ts';
import { type Served, startServed } from '../kit/served.ts';
import { connectSlowReader, type SlowReader } from '../kit/slow-reader.ts';

const pace = { perSecond: 100, forMs: 1_500 } as const;
/** How much later the slowest of 100 may be answered because of the crowd. Milliseconds. */
const maxMoreMs = 50;
/** The machine may be busy with something else. */
const rounds = 3;

const payment = `${paymentsPath}/1234-wertiq-983`;

/** 1,000: heads that do not end, bodies that do not come, large answers that nobody reads. */
async function gather(bank: SimulatedBank, port: number): Promise<readonly SlowReader[]> {
  const readers = 200;
  const before = bank.requests.length;
  bank.injectFault(
    { name: 'huge-answer', bytes: 1024 * 1024, framing: 'content-length' },
    { times: readers },
  );
  const crowd = await connectMany(port, readers, () => requestText(`GET ${payment} HTTP/1.1`));
  await bank.waitUntil(() => bank.requests.length === before + readers, 60_000);
  const heads = () => `GET ${payment} HTTP/1.1\r\nHost: a\r\nX-A: `;
  const bodies = () => initiation('{"a":', 'Content-Length: 1000');
  const senders = [...(await connectMany(port, 400, bodies)), ...(await connectMany(port, 400, heads))];
  for (const sender of senders) sender.resume(); // or it would not notice that it was hung up on
  return [...crowd, ...senders];
}

const connectMany = (port: number, count: number, bytes: () => string) =>
  Promise.all(Array.from({ length: count }, () => connectSlowReader(port, bytes())));

/** The 99th percentile of status reads, each answered by the bank, in milliseconds. */
async function measure(t: TestContext, { url }: Served): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const { ended } = startLoad(pace, () => {
    const one = { method: 'GET', path: newStatusPath() } as const;
    return exchange(one, (read) => call(url, read, agent));
  });
  const exchanges = await ended;
  // The bank knows none of these payments, and says so itself: nobody else may have answered.
  assert.deepEqual(
    Object.keys(failuresIn(exchanges)).filter((sort) => !/RESOURCE_UNKNOWN/.test(sort)),
    [],
  );
  agent.destroy();
  return quantile(exchanges, 0.99);
}

/*
 * The story: the attacker does all of it at once, from 1,000 connections: it sends heads and bodies that do not end,
 * and asks for answers that it does not read.
 */
describe('a crowd of slow TPPs', () => {
  test('E1-E4: 1,000 of them keep nobody else waiting', async (t) => {
    const bank = await startBank(t);
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } };
    const served = await startServed(t, { environments });
    await measure(t, served); // warms both up

    const more: number[] = [];
    for (let round = 1; round <= rounds && Math.min(...more) > maxMoreMs - 1; round++) {
      const alone = await measure(t, served);
      const crowd = await gather(bank, served.port);
      const inCrowd = await measure(t, served);
      const held = crowd.filter(({ socket }) => !socket.destroyed).length;
      for (const { socket } of crowd) socket.destroy();
      t.diagnostic(`p99 alone ${alone.toFixed(1)} ms, beside ${held} slow ones ${inCrowd.toFixed(1)} ms`);
      assert.equal(held, 1_000, 'they were not there any more');
      more.push(inCrowd - alone);
    }
    assert.ok(Math.min(...more) < maxMoreMs, `${more.map(Math.round)} ms later`);
  });
});
