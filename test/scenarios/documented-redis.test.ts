/** Checks docs/operations/redis.md: the keys and their sizes, the commands per request, and the required rights. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { type RedisServer, redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const page = readFileSync(join(root, 'docs/operations/redis.md'), 'utf8');
/** The cells of each table row of the page. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')));
const secondCellOf = (first: string) => rows.find(([, cell]) => cell === first)?.[2] ?? assert.fail(first);

/** A gateway with two environments and two tenants, used as a client of one of them. */
async function startClient(t: TestContext, url: string) {
  const [sandbox, production] = [await startBank(t), await startBank(t)];
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl: sandbox.baseUrl },
    production: { baseUrl: production.baseUrl },
  };
  const sections = { environments, clients: clientSettings() };
  const gateway = await startGateway(t, sections, redisStateFactory(url, 'penstock:')());
  const send = async ({ headers = [], ...rest }: Call) => {
    const reply = await call(gateway.url, {
      ...rest,
      headers: [...headers, ['X-API-Key', apiKeyOf('shop')]],
    });
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  const pay = async () => String(jsonOf(await send(initiation)).paymentId);
  return { send, pay };
}

/** The name and the key of each command of a client. Clients send batches of commands as scripts. */
function commandsIn(monitored: string): readonly string[] {
  const lines = monitored.split('\r\n').filter((line) => /"eval/.test(line) && !line.includes(' lua]'));
  return lines.flatMap((line) => {
    const [, , keyCount, ...args] = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text ?? '');
    const keys = args.splice(0, Number(keyCount)); // the second keys come last
    return keys.slice(0, Number(args.shift())).map((key) => {
      const [name, argCount] = args.splice(0, 2);
      args.splice(0, Number(argCount));
      return `${name} ${key}`;
    });
  });
}

/** Counts the commands of requests, but not those that every instance sends periodically. */
async function startMonitor(t: TestContext, redis: RedisServer) {
  let text = '';
  const socket = connect(redis.port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
  socket.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  t.after(() => socket.destroy());
  await until(5_000, 'the monitor is ready', () => text.includes('OK'));
  const periodic = /:limit:|:secret|:beat|:holder|:identities$/;
  const count = () => commandsIn(text).filter((command) => !periodic.test(command)).length;
  return {
    count,
    /** Waits until all commands so far are reported, and none has followed for 100 ms and ten further commands. */
    async idle() {
      let [last, sinceMs, checks] = [-1, performance.now(), 0];
      await until(5_000, 'no more commands are sent', async () => {
        const marker = randomUUID();
        await redis.command('ECHO', marker);
        await until(5_000, 'all commands are reported', () => text.includes(marker));
        if (count() !== last) [last, sinceMs, checks] = [count(), performance.now(), 0];
        return performance.now() - sinceMs > 100 && checks++ > 10;
      });
    },
    reset() {
      text = '';
    },
  };
}

describe('the operations page on Redis', { skip: skipWithoutRedisServer }, () => {
  test('states the number of commands for each kind of request', async (t) => {
    const redis = await startRedis(t);
    const { send, pay } = await startClient(t, redis.url);
    const monitor = await startMonitor(t, redis);
    const repeated = {
      ...initiation,
      headers: [...initiation.headers, ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721']],
    } as const;
    await send(repeated);
    const read = (id: string) => ({ method: 'GET', path: `${transfersPath}/${id}` });
    const status = (id: string) => ({ method: 'GET', path: `${transfersPath}/${id}/status` });

    const requests: Readonly<Record<string, (id: string) => Promise<Reply>>> = {
      initiation: () => send(initiation),
      'cancellation, authorisation': (id) => send({ method: 'DELETE', path: `${transfersPath}/${id}` }),
      'status, answered by the bank': (id) => send(status(id)),
      'status, from the cache': (id) => send(status(id)),
      'replay of a payment': () => send(repeated),
      'read of the payment, with a new status': (id) => send(read(id)),
      'read of the payment, with the known status': (id) => send(read(id)),
      'any other read': (id) => send(read(`${id}/authorisations`)),
    };
    for (const [name, request] of Object.entries(requests)) {
      const counts: number[] = [];
      // A count that three rounds have: on a busy machine, Redis may not answer in time, and the gateway does without it; and a
      // command of a timer, such as the release of a lease, may fall into a round.
      const counted = () => counts.find((one) => counts.filter((other) => other === one).length === 3);
      for (let round = 0; counted() === undefined; round++) {
        assert.ok(
          round < 20,
          `${name}: the counts differ (${counts}), or the cached status expires too early`,
        );
        const id = await pay();
        if (name.endsWith('from the cache')) await send(status(id));
        if (name.endsWith('with the known status')) await send(read(id));
        await monitor.idle();
        monitor.reset();
        const reply = await request(id);
        await monitor.idle();
        const isExpired = name.endsWith('from the cache') && !/hit/.test(reply.header('Cache-Status') ?? '');
        if (isExpired) continue; // the machine is busy
        counts.push(monitor.count());
      }
      assert.equal(Number(counted()), Number(secondCellOf(name)), `${name}: ${counts}`);
    }
  });

  test('lists all keys, with sizes that are at most 50 % too low', async (t) => {
    const redis = await startRedis(t);
    const { send, pay } = await startClient(t, redis.url);
    const id = await pay();
    await send({ method: 'GET', path: `${transfersPath}/${id}/status` });
    for (const key of await keysIn(redis)) {
      const row = rows.find(([, names = '']) => patternsIn(names).some((pattern) => pattern.test(key)));
      assert.ok(row, `the page does not list ${key}`);
      const stated = Number(/^\d+/.exec(row[3] ?? '')?.[0]);
      const bytes = Number(await redis.command('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
      if (Number.isInteger(stated)) assert.ok(bytes < stated * 1.5, `${key}: ${bytes} bytes, not ${stated}`);
    }
  });

  test('names rights that are sufficient', async (t) => {
    const redis = await startRedis(t);
    const [, rules = '', patterns = ''] = /^`(.*)` on `(.*)` is enough$/.exec(secondCellOf('ACL')) ?? [];
    const acl = [...rules.split(' '), ...patterns.split(' ')];
    await redis.command('ACL', 'SETUSER', 'gateway', 'reset', 'on', '>word', ...acl);
    const { send, pay } = await startClient(t, redis.url.replace('//', '//gateway:word@'));
    const id = await pay();
    await send({ method: 'GET', path: `${transfersPath}/${id}/status` });
    await send({ method: 'DELETE', path: `${transfersPath}/${id}` });
    const errors = String(await redis.command('INFO', 'errorstats'));
    assert.doesNotMatch(errors, /NOPERM/);
  });
});

const keysIn = async (redis: RedisServer) => [await redis.command('KEYS', '*')].flat().map(String);

/** Patterns of keys as in `ledger:entry:*`; a range such as `0` … `f` stands for one character. */
const patternsIn = (names: string) =>
  [...names.replace(/:0` … `f`/, ':?`').matchAll(/`([^`]+)`/g)].map(
    ([, name = '']) => new RegExp(`^penstock:${name.replaceAll('*', '.+').replaceAll('?', '.')}$`),
  );
