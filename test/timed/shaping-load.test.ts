/** A full queue, and ten thousand connections: the gateway stays quick for whoever looks after it, and its memory bounded. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { timed } from '../kit/circuits.ts';
import { startBank } from '../kit/gateway.ts';
import { percentile } from '../kit/percentile.ts';
import { initiation } from '../kit/request.ts';
import { type Served, startServed } from '../kit/served.ts';
import { until } from '../kit/within.ts';

const queue = 1_000;
const connections = 10_000;

/** Resident memory of a process in MiB, where the system tells it so. */
const memoryOf = (pid: number | undefined): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** How long the gateway takes to say that it lives: as long as its event loop makes anything wait, and the way there. */
async function delayOf(t: TestContext, { adminUrl }: Served): Promise<number> {
  const ask = (agent: Agent) => call(adminUrl, { method: 'GET', path: '/health/live' }, agent);
  return percentile((await timed(t, 200, ask)).times, 0.99);
}

/** Connections that a TPP keeps open, with a request begun on each. */
async function holdConnections(t: TestContext, port: number, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  let open = 0;
  while (sockets.length < count) {
    const begun = sockets.length;
    for (let one = 0; one < Math.min(400, count - begun); one++) {
      const socket = connect(port, '127.0.0.1', () => {
        open += 1;
        socket.write('GET /berlingroup/v1/payments/a/b HTTP/1.1\r\nHost: gateway\r\n');
      });
      sockets.push(socket.on('error', () => {}));
    }
    await until(10_000, 'they are open', () => open === sockets.length); // the system lets no more stand at the door
  }
  return sockets;
}

test('with 1,000 calls in the queue and 10,000 connections', {
  skip: process.platform !== 'linux',
}, async (t) => {
  const bank = await startBank(t);
  const patient = '1min';
  const served = await startServed(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    deadlines: { write: '2min', read: '2min', status: '2min' },
    idempotency: { wait: '1min' },
    shaping: {
      rate: '1/s',
      burst: 1,
      queue,
      maxWait: { write: patient, read: patient, status: patient },
    },
  });
  const before = { delay: await delayOf(t, served), memory: memoryOf(served.command.pid) };

  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const refusals: string[] = [];
  const pay = () =>
    call(served.url, initiation, agent).then(
      (reply) => void refusals.push(reply.header('Penstock-Error') ?? ''),
      () => {},
    );
  for (let one = 0; one < queue + 100; one++) void pay();
  await until(
    20_000,
    'the queue is full',
    () => refusals.filter((code) => code === 'QUEUE_FULL').length >= 90,
  );
  const queued = { delay: await delayOf(t, served), memory: memoryOf(served.command.pid) };

  await holdConnections(t, served.port, connections - queue);
  const full = { delay: await delayOf(t, served), memory: memoryOf(served.command.pid) };
  for (const [what, { delay, memory }] of Object.entries({ before, queued, full }))
    t.diagnostic(`${what}: ${delay.toFixed(1)} ms (p99), ${memory.toFixed(0)} MiB`);

  assert.ok(queued.delay < 250 && full.delay < 250, 'the event loop is held up');
  assert.ok(queued.memory - before.memory < 150, 'the queue takes too much');
  assert.ok(full.memory - queued.memory < 400, 'the connections take too much'); // 40 KiB each
  agent.destroy();
  served.command.kill('SIGKILL');
});
