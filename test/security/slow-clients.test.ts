import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { initiation, newStatusPath, paymentsPath, requestText } from '../kit/attack.ts';
import { call } from '../kit/call.ts';
import { startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { failuresIn, measureExchange, startLoad } from '../kit/load.ts';
import { connectSlowReader, type SlowReader } from '../kit/slow-reader.ts';

const payment = `${paymentsPath}/1234-wertiq-983`;

/** 1,000 connections with incomplete heads, incomplete bodies and unread large responses. */
async function connectSlowClients(bank: SimulatedBank, port: number): Promise<readonly SlowReader[]> {
  const readers = 100;
  const before = bank.requests.length;
  bank.injectFault(
    { name: 'huge-answer', bytes: 1024 * 1024, framing: 'content-length' },
    { times: readers },
  );
  const unread = await connectMany(port, readers, () => requestText(`GET ${payment} HTTP/1.1`));
  await bank.waitUntil(() => bank.requests.length >= before + readers, 60_000);
  const heads = () => `GET ${payment} HTTP/1.1\r\nHost: a\r\nX-A: `;
  const bodies = () => initiation('{"a":', 'Content-Length: 1000');
  const senders = [...(await connectMany(port, 450, bodies)), ...(await connectMany(port, 450, heads))];
  for (const sender of senders) sender.resume(); // a paused socket does not notice that it was closed
  return [...unread, ...senders];
}

const connectMany = (port: number, count: number, bytes: () => string) =>
  Promise.all(Array.from({ length: count }, () => connectSlowReader(port, bytes())));

/** Sends 100 status reads. Their payments are unknown at the bank: only the bank's own 404 shows that it was asked. */
async function readStatuses(t: TestContext, { url }: GatewayProcess): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const load = startLoad(t, { perSecond: 100, forMs: 1_000 }, () => {
    const one = { method: 'GET', path: newStatusPath() } as const;
    return measureExchange(one, (read) => call(url, read, agent));
  });
  assert.deepEqual(
    Object.keys(failuresIn(await load.ended)).filter((kind) => !/RESOURCE_UNKNOWN/.test(kind)),
    [],
  );
}

/*
 * Attack: on 1,000 connections at the same time, the attacker sends heads and bodies that do not end, and does not
 * read the responses.
 */
test('E1-E4: the gateway answers every read while 1,000 slow TPPs keep their connections open', async (t) => {
  const bank = await startBank(t);
  const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } };
  const served = await startGatewayProcess(t, { environments });
  const clients = await connectSlowClients(bank, served.port);
  await readStatuses(t, served);
  const connected = clients.filter(({ socket }) => !socket.destroyed).length;
  assert.ok(connected > 500, `${connected} clients were still connected`); // on a slow machine the first heads have timed out
  for (const { socket } of clients) socket.destroy();
});
