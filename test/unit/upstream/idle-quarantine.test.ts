import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createIdleQuarantine } from '../../../src/upstream/idle-quarantine.ts';
import { listen } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

test('data that arrived during a stall of the process is read before the quarantine ends', async (t) => {
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
  connection.on('data', () => seen.push('data'));
  const quarantine = createIdleQuarantine(() => seen.push('released'));
  await nextTurn(); // timers run next, then sockets are read

  const startedAtMs = performance.now();
  quarantine({ idleSinceMs: startedAtMs });
  bank.write('unsolicited');
  while (performance.now() < startedAtMs + 10);
  await until(2_000, 'the quarantine is over', () => seen.includes('released'));
  assert.deepEqual(seen, ['data', 'released']);
});

test('every connection is released after its own 5 ms, in order', async () => {
  const released: { readonly name: string; readonly quarantinedMs: number }[] = [];
  const quarantine = createIdleQuarantine<{ readonly name: string; readonly idleSinceMs: number }>(
    ({ name, idleSinceMs }) => released.push({ name, quarantinedMs: performance.now() - idleSinceMs }),
  );
  for (const name of ['a', 'b', 'c']) {
    quarantine({ name, idleSinceMs: performance.now() });
    const beganAtMs = performance.now();
    await until(2_000, 'a moment has passed', () => performance.now() > beganAtMs + 1);
  }
  await until(2_000, 'all are released', () => released.length === 3);
  assert.deepEqual(
    released.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.ok(released.every(({ quarantinedMs }) => quarantinedMs >= 5));
});
