/** What slow or numerous clients cost the others, and how soon a new certificate is used. */

import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import {
  newStatusPath,
  paymentsPath,
  initiation as rawInitiation,
  requestText,
} from '../../test/kit/attack.ts';
import { callOnce } from '../../test/kit/call.ts';
import { startBank } from '../../test/kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { measureExchange, startLoad } from '../../test/kit/load.ts';
import { copyCertificateFiles, createAuthority, replaceCertificateFiles } from '../../test/kit/openssl.ts';
import { initiation } from '../../test/kit/request.ts';
import { connectSlowReader, type SlowReader } from '../../test/kit/slow-reader.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { until } from '../../test/kit/within.ts';
import { memoryMiB } from '../measure/proc.ts';
import { percentile } from '../measure/statistics.ts';
import { closedWith, type Measure, ms, type Row, spreadOf, timeOf, timesOf } from './measure.ts';

const payment = `${paymentsPath}/1234-wertiq-983`;

/** Status reads alone, and beside 1,000 clients that send heads and bodies that do not end, or read nothing. */
export const measureSlowClients: Measure = async (life) => {
  const bank = await startBank(life);
  const gateway = await startGatewayProcess(life, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const read = async () => {
    const agent = new Agent({ keepAlive: true });
    const load = startLoad(life, { perSecond: 100, forMs: 3_000, maxInFlight: Infinity }, () =>
      measureExchange({ method: 'GET', path: newStatusPath() }, (one) => callOnce(gateway.url, one, agent)),
    );
    const times = (await load.ended).map(({ tookMs }) => tookMs);
    agent.destroy();
    return times;
  };
  await read(); // for the compiler
  const alone = await read();
  const before = bank.requests.length;
  bank.injectFault({ name: 'huge-answer', bytes: 1024 * 1024, framing: 'content-length' }, { times: 200 });
  const readers = await connectMany(gateway, 200, () => requestText(`GET ${payment} HTTP/1.1`));
  await bank.waitUntil(() => bank.requests.length >= before + 200, 60_000);
  const senders = [
    ...(await connectMany(gateway, 400, () => rawInitiation('{"a":', 'Content-Length: 1000'))),
    ...(await connectMany(gateway, 400, () => `GET ${payment} HTTP/1.1\r\nHost: a\r\nX-A: `)),
  ];
  for (const sender of senders) sender.resume(); // to notice when the gateway closes the connection
  const beside = await read();
  for (const { socket } of [...readers, ...senders]) socket.destroy();
  const moreMs = percentile(beside, 0.99) - percentile(alone, 0.99);
  return [
    ['status reads alone', spreadOf(alone, 0.99), ''],
    ['status reads beside 1,000 slow clients', spreadOf(beside, 0.99), ''],
    ['p99 later', ms(moreMs), '50 ms'],
  ];
};

const connectMany = (
  { port }: GatewayProcess,
  count: number,
  bytes: () => string,
): Promise<readonly SlowReader[]> =>
  Promise.all(Array.from({ length: count }, () => connectSlowReader(port, bytes())));

const queued = 1_000;

/** The event loop's delay, as /health/live shows it, and resident memory; Linux only. */
export const measureQueue: Measure = async (life) => {
  const bank = await startBank(life);
  const patient = '1min';
  const gateway = await startGatewayProcess(life, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    deadlines: { write: '2min', read: '2min', status: '2min' },
    idempotency: { wait: '1min' },
    shaping: {
      rate: '1/s',
      burst: 1,
      queue: queued,
      maxWait: { write: patient, read: patient, status: patient },
    },
  });
  const rows: Row[] = [];
  const measure = async (when: string, goal: string) => {
    const agent = closedWith(life, new Agent({ keepAlive: true }));
    const health = { method: 'GET', path: '/health/live' };
    const times = await timesOf(500, () => callOnce(gateway.adminUrl, health, agent));
    rows.push([`${when}: delay`, spreadOf(times, 0.99), '']);
    rows.push([`${when}: memory`, `${memoryMiB(gateway.command.pid ?? 0, 'VmRSS').toFixed(0)} MiB`, goal]);
  };
  await measure('idle', '');

  const agent = closedWith(life, new Agent({ keepAlive: true }));
  let refused = 0;
  for (let number = 0; number < queued + 100; number++) {
    callOnce(gateway.url, initiation, agent).then(
      (reply) => {
        if (reply.header('Penstock-Error') === 'QUEUE_FULL') refused++;
      },
      () => {},
    );
  }
  await until(30_000, 'the queue is full', () => refused >= 90);
  await measure('queue full', '150 MiB more');
  await holdConnections(life, gateway.port, 9_000);
  await measure('queue full and 10,000 connections', '400 MiB more, 40 KiB each');
  return rows;
};

/** Opens connections with a request begun on each. */
async function holdConnections(life: TestScope, port: number, count: number): Promise<void> {
  const sockets: Socket[] = [];
  life.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  let open = 0;
  while (sockets.length < count) {
    for (let one = 0; one < 400; one++) {
      const socket = connect(port, '127.0.0.1', () => {
        open++;
        socket.write(`GET ${payment} HTTP/1.1\r\nHost: gateway\r\n`);
      });
      sockets.push(socket.on('error', () => {}));
    }
    await until(10_000, 'they are open', () => open === sockets.length); // the system's backlog is limited
  }
}

/** From the moment when the files are replaced until clients see the new certificate. */
export const measureCertificate: Measure = async (life) => {
  const authority = createAuthority(life);
  const files = copyCertificateFiles(join(authority.folder, 'listener'), 'listener', authority.issue('old'));
  const gateway = await startGatewayProcess(life, {
    listen: { tls: { certFile: files.certFile, keyFile: files.keyFile } },
    environments: { sandbox: { baseUrl: 'http://127.0.0.1:9' } },
  });
  replaceCertificateFiles(files, authority.issue('new'));
  const isNew = async () => (await subjectAt(gateway.port, authority.cert)) === 'new';
  return [['until clients see it', ms(await timeOf(until(30_000, 'it is shown', isNew))), '5 s']];
};

function subjectAt(port: number, ca: string): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', ca });
  return new Promise<string>((resolve, reject) => {
    socket.once('secureConnect', () => resolve(String(socket.getPeerCertificate().subject.CN)));
    socket.once('error', reject);
  }).finally(() => socket.destroy());
}
