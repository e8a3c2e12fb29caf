import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createIdleQuarantine } from '../../../src/upstream/idle-quarantine.ts';
import { listen } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

test('what came while this process stood still is heard before anybody has rested', async (t) => {
  const server = createServer();
  const accepted = once(server, 'connection');
  const bank = connect(await listen(server), '127.0.0.1');
  const [connection] = await accepted;
  t.after(() => {
    bank.destroy();
    connection.destroy();
    server.close();
  });
  const seen: string[] = [];
  connection.on('data', () => seen.push('heard'));
  const rest = createIdleQuarantine(() => seen.push('rested'));
  await nextTurn(); // the timers come next, and the sockets after them

  const startedAtMs = performance.now();
  rest({ idleSinceMs: startedAtMs });
  bank.write('unasked');
  while (performance.now() < startedAtMs + 10);
  await until(2_000, 'the rest is over', () => seen.includes('rested'));
  assert.deepEqual(seen, ['heard', 'rested']);
});

test('each rests for 5 ms of its own, and they are told of in their order', async () => {
  const told: { readonly name: string; readonly restedMs: number }[] = [];
  const rest = createIdleQuarantine<{ readonly name: string; readonly idleSinceMs: number }>(
    ({ name, idleSinceMs }) => told.push({ name, restedMs: performance.now() - idleSinceMs }),
  );
  for (const name of ['a', 'b', 'c']) {
    rest({ name, idleSinceMs: performance.now() });
    const beganAtMs = performance.now();
    await until(2_000, 'a moment has passed', () => performance.now() > beganAtMs + 1);
  }
  await until(2_000, 'all have rested', () => told.length === 3);
  assert.deepEqual(
    told.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.ok(told.every(({ restedMs }) => restedMs >= 5));
});
