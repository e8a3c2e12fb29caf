/** docs/operations/redis.md says rightly which keys there are, how many commands a request costs, and what Redis must allow. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { createRedisState } from '../../src/state/redis.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { type RedisServer, startRedis, withoutRedisServer } from '../kit/redis.ts';
import { initiation, transfers } from '../kit/request.ts';
import { startSides } from '../kit/sides.ts';
import { until } from '../kit/within.ts';

const page = readFileSync(join(root, 'docs/operations/redis.md'), 'utf8');
/** The cells of each row of the page's tables. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')));
const secondCellOf = (first: string) => rows.find(([, cell]) => cell === first)?.[2] ?? assert.fail(first);

/** A gateway before both sides of a bank, and what it asks of Redis. */
async function start(t: TestContext, redis: RedisServer) {
  const sides = await startSides(t, { state: { redis: redis.url } });
  const ask = async (one: Call) => {
    const reply = await sides.ask('shop', one);
    assert.ok(reply.status < 300, reply.text);
    return reply;
  };
  const pay = async () => String(jsonOf(await ask(initiation)).paymentId);
  return { ask, pay };
}

/** Notes every command that comes over a connection, not those inside of scripts. */
async function monitor(t: TestContext, { port }: RedisServer) {
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
  socket.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  t.after(() => socket.destroy());
  await until(5_000, 'Redis tells', () => text.includes('OK'));
  /** The beat of every second asks these, too; a payment asks for the active environment besides. */
  const ofTheBeat = /"(?:info|ping|smembers)"|:limit:|:secret"|:beat"|:holder:|:holds"/i;
  return {
    restart() {
      text = '';
    },
    count: () =>
      text.split('\r\n').filter((line) => /^\+\d/.test(line) && !/ lua\]/.test(line) && !ofTheBeat.test(line))
        .length,
  };
}

describe('what the page on Redis says', { skip: withoutRedisServer }, () => {
  test('of commands for each request is so', async (t) => {
    const redis = await startRedis(t);
    const { ask, pay } = await start(t, redis);
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
      "the same, if the payment's status is kept": (id) =>
        ask({ method: 'DELETE', path: `${transfers}/${id}` }),
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
        if (/from the cache|is kept/.test(name)) await ask(status(id));
        await settled(commands);
        commands.restart();
        await request(id);
        await settled(commands);
        counted.push(commands.count());
      }
      assert.equal(Math.min(...counted), Number(secondCellOf(name)), name);
    }
  });

  test('of keys and their sizes is so', async (t) => {
    const redis = await startRedis(t);
    const { ask, pay } = await start(t, redis);
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
    const url = redis.url.replace('//', '//gateway:word@');
    const bank = await startBank(t);
    const environments = { sandbox: { baseUrl: bank.baseUrl } };
    const gateway = await startGateway(
      t,
      { environments },
      createRedisState({ kind: 'single', url }, 'penstock:', () => {}),
    );
    const { status, text } = await call(gateway.url, initiation);
    assert.equal(status, 201, text);
    const path = `${transfers}/${jsonOf({ text }).paymentId}`;
    assert.equal((await call(gateway.url, { method: 'GET', path: `${path}/status` })).status, 200);
    assert.ok((await call(gateway.url, { method: 'DELETE', path })).status < 300);
    const refused = String(await redis.command('INFO', 'errorstats'));
    assert.doesNotMatch(refused, /NOPERM/);
  });
});

/** Waits until Redis has told no new command for some turns of the loop. */
async function settled(commands: { count(): number }): Promise<void> {
  let [last, since] = [commands.count(), performance.now()];
  await until(5_000, 'nothing more is asked', () => {
    if (commands.count() !== last) [last, since] = [commands.count(), performance.now()];
    return performance.now() - since > 60;
  });
}

const keys = async (redis: RedisServer) => [await redis.command('KEYS', '*')].flat().map(String);

/** `ledger:entry:*` and the like; a range `0` … `f` is one character. */
const patternsIn = (names: string) =>
  [...names.replace(/:0` … `f`/, ':?`').matchAll(/`([^`]+)`/g)].map(
    ([, name = '']) => new RegExp(`^penstock:${name.replaceAll('*', '.+').replaceAll('?', '.')}$`),
  );
