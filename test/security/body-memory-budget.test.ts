import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { initiation, paymentsPath, refusalOf, requestText } from '../kit/attack.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { connectRaw, sendRaw } from '../kit/raw.ts';
import { connectSlowReader } from '../kit/slow-reader.ts';

const connections = Number(process.env.SLOW_READERS ?? 10);
const pipelined = 400;
/** What a gateway may need for it all. Without bounds it was 1.9 GB. */
const maxMiB = 600;

const read = () => requestText(`GET ${paymentsPath}/1234-wertiq-983 HTTP/1.1`);

/** Physical memory of a process, where the system tells. */
function mebibytesOf(pid: number | undefined): number {
  const [, kibibytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kibibytes) / 1024);
}

/*
 * The story: the attacker asks 400 times on each of a few connections, all at once, and reads none of the answers.
 */
describe('many requests whose answers nobody reads', { skip: process.platform !== 'linux' }, () => {
  test('E3, A8: cost no more memory than one of them on each connection', async (t) => {
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    bank.injectFault({ name: 'huge-answer', bytes: 3 * 1024 * 1024, framing: 'content-length' });
    const before = mebibytesOf(command.pid);
    const readers = await Promise.all(
      Array.from({ length: connections }, () => connectSlowReader(port, read().repeat(pipelined))),
    );
    await bank.waitUntil(() => bank.requests.length >= connections, 120_000);
    bank.clearFaults();
    for (let count = 0; count < 50; count++) await sendRaw(port, requestText('GET /nowhere HTTP/1.1'));
    const after = mebibytesOf(command.pid);
    t.diagnostic(`${connections} connections: ${before} MiB before, ${after} MiB with all of them waiting`);
    assert.ok(after < maxMiB, `${after} MiB`);
    for (const { socket } of readers) socket.destroy();
  });
});

/*
 * The story: the attacker sends bodies within the limit in chunks of one byte, which take six on the wire and a hundred
 * in a program that keeps each of them; and it never sends the last.
 */
describe('bodies that come byte by byte', { skip: process.platform !== 'linux' }, () => {
  test('E3, A8: cost no more memory than others', async (t) => {
    const environments = { sandbox: { baseUrl: (await startBank(t)).baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    const senders = await Promise.all(Array.from({ length: 4 }, () => connectRaw(port)));
    t.after(() => {
      for (const { destroy } of senders) destroy();
    });
    const before = mebibytesOf(command.pid);
    const body = '1\r\n \r\n'.repeat(1024 * 1024 - 1);
    for (const { send } of senders) send(initiation(body, 'Transfer-Encoding: chunked'));
    await Promise.all(senders.map(({ sent }) => sent(60_000)));
    await sendRaw(port, requestText('GET /nowhere HTTP/1.1')); // whatever came before it is read
    const after = mebibytesOf(command.pid);
    t.diagnostic(`${before} MiB before, ${after} MiB with all of them sending`);
    assert.ok(after < before + 150, `${after} MiB`); // kept one by one, it was 500 more
  });
});

/*
 * The story: the attacker sends bodies within the limit on many connections, and never the last byte.
 */
describe('bodies that never end', { skip: process.platform !== 'linux' }, () => {
  test('E2, E4: have room together, and whoever has been sending for longest gives way', async (t) => {
    const environments = { sandbox: { baseUrl: (await startBank(t)).baseUrl } };
    const { command, port } = await startGatewayProcess(t, { environments });
    const senders = await Promise.all(Array.from({ length: 800 }, () => connectRaw(port)));
    t.after(() => {
      for (const { destroy } of senders) destroy();
    });
    const before = mebibytesOf(command.pid);
    const body = ' '.repeat(1024 * 1024 - 1);
    const head = `Content-Length: ${1024 * 1024}`;
    for (const { send } of senders) send(initiation(body, head));
    await Promise.all(senders.map(({ sent }) => sent(60_000)));
    const after = mebibytesOf(command.pid);
    const [first] = senders;
    assert.deepEqual(first && refusalOf(await first.answer()), [503, 'OVERLOADED']);
    t.diagnostic(`${before} MiB before, ${after} MiB with 800 of them sending`);
    assert.ok(after < before + 500, `${after} MiB`); // all of them would be 800 more
  });
});
