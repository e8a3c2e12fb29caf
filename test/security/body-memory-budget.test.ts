import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { initiation, paymentsPath, refusalOf, requestText } from '../kit/attack.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw, type RawConnection, sendRaw } from '../kit/raw-connection.ts';
import { connectSlowReader } from '../kit/slow-reader.ts';

const connections = Number(process.env.SLOW_READERS ?? 10);
const pipelined = 400;
/** Without limits, the gateway used 1.9 GB. */
const maxMiB = 600;

const read = () => requestText(`GET ${paymentsPath}/1234-wertiq-983 HTTP/1.1`);

/** Physical memory of a process. */
function mebibytesOf(pid: number | undefined): number {
  const [, kibibytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kibibytes) / 1024);
}

/*
 * Attack: the attacker sends 400 requests on each of a few connections and reads no response.
 */
describe('the memory for unread responses', { skip: process.platform !== 'linux' }, () => {
  test('E3, A8: is that of one response per connection, for any number of pipelined requests', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    bank.injectFault({ name: 'huge-answer', bytes: 3 * 1024 * 1024, framing: 'content-length' });
    const before = mebibytesOf(command.pid);
    const readers = await Promise.all(
      Array.from({ length: connections }, () => connectSlowReader(port, read())),
    );
    await bank.waitUntil(() => bank.requests.length >= connections, 120_000);
    for (const { socket } of readers) socket.write(read().repeat(pipelined - 1));
    bank.clearFaults();
    for (let count = 0; count < 50; count++) await sendRaw(port, requestText('GET /nowhere HTTP/1.1'));
    const after = mebibytesOf(command.pid);
    t.diagnostic(`${connections} connections: ${before} MiB before, ${after} MiB with unread responses`);
    assert.ok(after < maxMiB, `${after} MiB`);
    for (const { socket } of readers) socket.destroy();
  });
});

/*
 * Attack: the attacker sends bodies within the limit in chunks of one byte, which take six bytes on the wire and a hundred
 * in a program that stores each of them, and never sends the last one.
 */
describe('the memory for a body in chunks of one byte', { skip: process.platform !== 'linux' }, () => {
  test('E3, A8: is no larger than for other bodies', async (t) => {
    const environments = { sandbox: { baseUrl: (await startBank(t)).baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    const senders = await Promise.all(Array.from({ length: 2 }, () => connectRaw(port)));
    t.after(() => {
      for (const { destroy } of senders) destroy();
    });
    const before = mebibytesOf(command.pid);
    const body = '1\r\n \r\n'.repeat(1024 * 1024 - 1);
    for (const { send } of senders) send(initiation(body, 'Transfer-Encoding: chunked'));
    await Promise.all(senders.map(({ sent }) => sent(60_000)));
    await sendRaw(port, requestText('GET /nowhere HTTP/1.1')); // everything before is read by then
    const after = mebibytesOf(command.pid);
    t.diagnostic(`${before} MiB before, ${after} MiB with incomplete bodies`);
    assert.ok(after < before + 150, `${after} MiB`); // 250 MiB more if every chunk is stored
  });
});

/*
 * Attack: the attacker sends bodies within the limit on many connections, and never the last byte.
 */
describe('the memory for incomplete bodies', { skip: process.platform !== 'linux' }, () => {
  test('E2, E4: is limited for all together, and the oldest body is refused with 503', async (t) => {
    const environments = { sandbox: { baseUrl: (await startBank(t)).baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    const senders: RawConnection[] = [];
    t.after(() => {
      for (const { destroy } of senders) destroy();
    });
    const before = mebibytesOf(command.pid);
    const body = ' '.repeat(1024 * 1024 - 1);
    const head = `Content-Length: ${1024 * 1024}`;
    // The budget is 256 MiB, so that 544 of 800 bodies of nearly 1 MiB exceed it. In batches, because a slow machine does
    // not receive all of them within the 30 s that a request may take.
    while (senders.length < 800) {
      const batch = await Promise.all(Array.from({ length: 200 }, () => connectRaw(port)));
      senders.push(...batch);
      for (const { send } of batch) send(initiation(body, head));
      await Promise.all(batch.map(({ sent }) => sent(30_000)));
    }
    const oldest = await Promise.all(senders.slice(0, 544).map(({ answer }) => answer()));
    for (const response of oldest) assert.deepEqual(refusalOf(response), [503, 'OVERLOADED']);
    const after = mebibytesOf(command.pid);
    t.diagnostic(`${before} MiB before, ${after} MiB with 800 incomplete bodies`);
    // Refused bodies are garbage for a while. The process holds 800 MiB more if it does not release them.
    assert.ok(after < before + 650, `${after} MiB`);
  });
});
