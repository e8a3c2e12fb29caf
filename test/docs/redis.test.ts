/** docs/operations/redis.md says rightly which keys there are, how many commands a request costs, and what Redis must allow. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { type RedisServer, redisStateFactory, skipWithoutRedisServer, startRedis } from '../kit/redis.ts';
import { initiation, transfers } from '../kit/request.ts';
import { apiKeyOf, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const page = readFileSync(join(root, 'docs/operations/redis.md'), 'utf8');
/** The cells of each row of the page's tables. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')));
const secondCellOf = (first: string) => rows.find(([, cell]) => cell === first)?.[2] ?? assert.fail(first);

/** A gateway before both sides of a bank, as a client of one of two tenants. */
async function start(t: TestContext, url: string) {
  const [sandbox, production] = [await startBank(t), await startBank(t)];
  const environments = {
    active: 'sandbox',
    sandbox: { baseUrl: sandbox.baseUrl },
    production: { baseUrl: production.baseUrl },
  };
  const sections = { environments, clients: clientSettings() };
  const gateway = await startGateway(t, sections, redisStateFactory(url, 'penstock:')());
  const ask = async ({ headers = [], ...rest }: Call) => {
    const reply = await call(gateway.url, {
      ...rest,
      headers: [...headers, ['X-API-Key', apiKeyOf('shop')]],
    });
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  const pay = async () => String(jsonOf(await ask(initiation)).paymentId);
  return { ask, pay };
}

/** Of each command that a client gave its name and its key; they come in scripts, several in one. */
function commandsIn(monitored: string): readonly string[] {
  const lines = monitored.split('\r\n').filter((line) => /"eval/.test(line) && !line.includes(' lua]'));
  return lines.flatMap((line) => {
    const [, , count, ...words] = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word]) => word ?? '');
    return words.splice(0, Number(count)).map((key) => {
      const [name, many] = words.splice(0, 2);
      words.splice(0, Number(many));
      return `${name} ${key}`;
    });
  });
}

/** Notes every command. */
async function monitor(t: TestContext, redis: RedisServer) {
  let text = '';
  const socket = connect(redis.port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
  socket.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  t.after(() => socket.destroy());
  await until(5_000, 'Redis tells', () => text.includes('OK'));
  /** The beat of every second gives these, too; a payment asks for the active environment besides. */
  const ofTheBeat = /^SMEMBERS|:limit:|:secret|:beat|:holder:|:holds/;
  const count = () => commandsIn(text).filter((command) => !ofTheBeat.test(command)).length;
  return {
    count,
    /** Waits until everything was told that was asked so far, and nothing more is asked for a while. */
    async settled() {
      let [last, sinceMs] = [-1, performance.now()];
      await until(5_000, 'nothing more is asked', async () => {
        const word = randomUUID();
        await redis.command('ECHO', word);
        await until(5_000, 'Redis has told all', () => text.includes(word));
        if (count() !== last) [last, sinceMs] = [count(), performance.now()];
        return performance.now() - sinceMs > 100;
      });
    },
    restart() {
      text = '';
    },
  };
}

describe('what the page on Redis says', { skip: skipWithoutRedisServer }, () => {
  test('of commands for each request is so', async (t) => {
    const redis = await startRedis(t);
    const { ask, pay } = await start(t, redis.url);
    const commands = await monitor(t, redis);
    const again = {
      ...initiation,
      headers: [...initiation.headers, ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721']],
    } as const;
    await ask(again);
    const read = (id: string) => ({ method: 'GET', path: `${transfers}/${id}` });
    const status = (id: string) => ({ method: 'GET', path: `${transfers}/${id}/status` });

    const requests: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
      initiation: () => pay(),
      'cancellation, authorisation': (id) => ask({ method: 'DELETE', path: `${transfers}/${id}` }),
      'status, answered by the bank': (id) => ask(status(id)),
      'status, from the cache': (id) => ask(status(id)),
      'replay of a payment': () => ask(again),
      'any other read': (id) => ask(read(id)),
    };
    for (const [name, request] of Object.entries(requests)) {
      const counted: number[] = [];
      // The least of some: a beat asks for the active environment like a payment does.
      for (let round = 0; round < 5; round++) {
        const id = await pay();
        if (name.endsWith('from the cache')) await ask(status(id));
        await commands.settled();
        commands.restart();
        await request(id);
        await commands.settled();
        counted.push(commands.count());
      }
      assert.equal(Math.min(...counted), Number(secondCellOf(name)), name);
    }
  });

  test('of keys and their sizes is so', async (t) => {
    const redis = await startRedis(t);
    const { ask, pay } = await start(t, redis.url);
    const id = await pay();
    await ask({ method: 'GET', path: `${transfers}/${id}/status` });
    await until(5_000, 'the beat has written', async () =>
      (await keys(redis)).some((key) => /holder/.test(key)),
    );
    for (const key of await keys(redis)) {
      const row = rows.find(([, names = '']) => patternsIn(names).some((pattern) => pattern.test(key)));
      assert.ok(row, `${key} does not stand on the page`);
      const said = Number(/^\d+/.exec(row[3] ?? '')?.[0]);
      const bytes = Number(await redis.command('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
      if (Number.isInteger(said)) assert.ok(bytes < said * 1.5, `${key}: ${bytes} bytes, not ${said}`);
    }
  });

  test('of the rights that are enough is so', async (t) => {
    const redis = await startRedis(t);
    const [, rules = '', patterns = ''] = /^`(.*)` on `(.*)` is enough$/.exec(secondCellOf('ACL')) ?? [];
    const words = [...rules.split(' '), ...patterns.split(' ')];
    await redis.command('ACL', 'SETUSER', 'gateway', 'reset', 'on', '>word', ...words);
    const { ask, pay } = await start(t, redis.url.replace('//', '//gateway:word@'));
    const id = await pay();
    await ask({ method: 'GET', path: `${transfers}/${id}/status` });
    await ask({ method: 'DELETE', path: `${transfers}/${id}` });
    const refused = String(await redis.command('INFO', 'errorstats'));
    assert.doesNotMatch(refused, /NOPERM/);
  });
});

const keys = async (redis: RedisServer) => [await redis.command('KEYS', '*')].flat().map(String);

/** `ledger:entry:*` and the like; a range `0` … `f` is one character. */
const patternsIn = (names: string) =>
  [...names.replace(/:0` … `f`/, ':?`').matchAll(/`([^`]+)`/g)].map(
    ([, name = '']) => new RegExp(`^penstock:${name.replaceAll('*', '.+').replaceAll('?', '.')}$`),
  );
