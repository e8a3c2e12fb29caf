import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createIdleQuarantine } from '../../../src/upstream/idle-quarantine.ts';
import { listen } from '../../kit/ports.ts';
import { until } from '../../kit/within.ts';

interface Connection {
  readonly name: string;
  readonly idleSinceMs: number;
}

function blockEventLoop(forMs: number): void {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs);
}

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
  const quarantine = createIdleQuarantine<Connection>(() => {});
  await nextTurn();

  quarantine.add({ name: 'a', idleSinceMs: performance.now() });
  bank.write('unsolicited');
  blockEventLoop(10);
  await until(2_000, 'the quarantine is over', () => {
    if (quarantine.release().length > 0) seen.push('released');
    return seen.includes('released');
  });
  assert.deepEqual(seen, ['data', 'released']);
});

test('every connection is released after its own 5 ms, in order', async () => {
  const released: { readonly name: string; readonly quarantinedMs: number }[] = [];
  const quarantine = createIdleQuarantine<Connection>(() => {});
  const release = () => {
    for (const { name, idleSinceMs } of quarantine.release())
      released.push({ name, quarantinedMs: performance.now() - idleSinceMs });
  };
  for (const name of ['a', 'b', 'c']) {
    quarantine.add({ name, idleSinceMs: performance.now() });
    const beganAtMs = performance.now();
    await until(2_000, 'a moment has passed', () => {
      release();
      return performance.now() > beganAtMs + 1;
    });
  }
  await until(2_000, 'all are released', () => {
    release();
    return released.length === 3;
  });
  assert.deepEqual(
    released.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  assert.ok(released.every(({ quarantinedMs }) => quarantinedMs >= 5));
});

test('reports when the awaited connection can be released, even if those before it have closed', async () => {
  let reports = 0;
  const quarantine = createIdleQuarantine<Connection>(() => {
    reports += 1;
  });
  const [first, second] = ['a', 'b'].map((name, at) => ({ name, idleSinceMs: performance.now() + 3 * at }));
  assert.ok(first && second);
  quarantine.add(first);
  quarantine.add(second);
  quarantine.awaitNext();
  await nextTurn();
  quarantine.remove(first);
  await until(2_000, 'a report', () => reports === 1);
  assert.deepEqual(quarantine.release(), [second]);
});
