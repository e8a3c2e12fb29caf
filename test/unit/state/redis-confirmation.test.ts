import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { UnconfirmedError } from '../../../src/state/ports.ts';
import type { RedisCommand } from '../../../src/state/redis-batch.ts';
import { type Confirmation, createConfirmedWrites } from '../../../src/state/redis-confirmation.ts';
import { createReplicaCounts } from '../../../src/state/redis-replicas.ts';
import { until } from '../../kit/within.ts';

const command = (key: string) => ({ name: 'SET', key, args: [] });

interface SentBatch extends PromiseWithResolvers<Confirmation> {
  readonly master: string;
  readonly keys: string;
  readonly replicas: number;
  readonly waitMs: number;
}

/** Masters with one replica each; a key belongs to the master that its first letter names. The test answers each batch. */
function startMasters(replicas: 'all' | number = 1, timeoutMs = 60_000) {
  const batches: SentBatch[] = [];
  const opened: string[] = [];
  const plain: string[] = [];
  const counts = createReplicaCounts(replicas);
  const confirmedWrites = createConfirmedWrites({
    masters: {
      masterOf: (key) => key[0],
      newConfirmingConnection(master) {
        let isClosed = false;
        opened.push(master);
        return {
          open: async () => 'master_replid:a',
          isClosed: () => isClosed,
          executeAndWait(commands, replicaCount, waitMs) {
            const keys = commands.map(({ key, redirectedBy = '' }) => `${redirectedBy}${key}`).join(' ');
            const batch = {
              master,
              keys,
              replicas: replicaCount,
              waitMs,
              ...Promise.withResolvers<Confirmation>(),
            };
            batches.push(batch);
            return batch.promise;
          },
          close() {
            isClosed = true;
          },
        };
      },
    },
    replicas: counts,
    sendUnconfirmed: async ({ key }, convert) => convert(plain.push(key)),
    timeoutMs,
    answerMs: 50,
  });
  for (const master of ['a', 'b']) counts.observe(master, 'master_replid:a');
  const send = (command: RedisCommand) => confirmedWrites.send(command, (result) => result);
  return { send, batches, opened, plain, counts };
}

const confirmed = (...results: readonly unknown[]) => ({ results, confirmedBy: 1 });
const isUnconfirmed = (error: unknown) => error instanceof UnconfirmedError;

describe('writes that replicas must confirm', () => {
  test('are collected while a batch is being confirmed, and sent as one batch', async () => {
    const { send, batches } = startMasters();
    const first = [send(command('a1')), send(command('a2'))];
    await nextTick();
    const second = [send(command('a3')), send(command('a4'))];
    await nextTick();
    assert.deepEqual(
      batches.map(({ keys }) => keys),
      ['a1 a2'],
    );
    batches[0]?.resolve(confirmed(1, 2));
    assert.deepEqual(await Promise.all(first), [1, 2]);
    await nextTick();
    assert.deepEqual(
      batches.map(({ keys }) => keys),
      ['a1 a2', 'a3 a4'],
    );
    batches[1]?.resolve(confirmed(3, 4));
    assert.deepEqual(await Promise.all(second), [3, 4]);
  });

  test('do not wait for other masters', async () => {
    const { send, batches } = startMasters();
    const other = [send(command('a1')), send(command('b1'))];
    await nextTick();
    batches[1]?.resolve(confirmed('of b'));
    assert.equal(await other[1], 'of b');
    batches[0]?.resolve(confirmed('of a'));
    assert.equal(await other[0], 'of a');
  });

  test('fail if too few replicas confirm them; the writes that wait behind them fail without being sent', async () => {
    const { send, batches, opened } = startMasters();
    const first = send(command('a1'));
    await nextTick();
    const second = send(command('a2'));
    batches[0]?.resolve({ results: [1], confirmedBy: 0 });
    await assert.rejects(first, isUnconfirmed);
    await assert.rejects(second, isUnconfirmed);
    assert.deepEqual(
      batches.map(({ keys }) => keys),
      ['a1'],
    );
    const third = send(command('a3'));
    await nextTick();
    batches[1]?.resolve(confirmed(3));
    assert.equal(await third, 3);
    assert.equal(opened.length, 2, 'a connection to a former master is not used again');
  });

  test('have one timeout for the wait in the queue and the wait for the replicas together', async () => {
    const startedAtMs = performance.now();
    const { send, batches } = startMasters(1, 60_000);
    const first = send(command('a1'));
    await nextTick();
    const second = send(command('a2'));
    await until(5_000, 'some time has passed', () => performance.now() > startedAtMs + 20);
    batches[0]?.resolve(confirmed(1));
    await first;
    await nextTick();
    assert.ok((batches[1]?.waitMs ?? 0) < 60_000, String(batches[1]?.waitMs));
    batches[1]?.resolve(confirmed(2));
    assert.equal(await second, 2);
  });

  test('fail if the master does not answer, and the next ones use a new connection', async () => {
    const { send, batches, opened } = startMasters(1, 1);
    await assert.rejects(send(command('a1')), { code: 'STATE_UNAVAILABLE' });
    assert.equal(batches.length, 1);
    await assert.rejects(send(command('a2')), { code: 'STATE_UNAVAILABLE' });
    assert.deepEqual(opened, ['a', 'a']);
  });

  test('fail one by one if Redis refuses them', async () => {
    const { send, batches } = startMasters();
    const [one, other] = [send(command('a1')), send(command('a2'))];
    await nextTick();
    batches[0]?.resolve(confirmed(new Error('OOM command not allowed'), 2));
    await assert.rejects(one, ({ cause }: Error) => cause instanceof Error && /OOM/.test(cause.message));
    assert.equal(await other, 2);
  });

  for (const kind of ['MOVED', 'ASK'])
    test(`are sent to the master that another one names with ${kind}, once`, async () => {
      const { send, batches } = startMasters();
      const [one, other] = [send(command('a1')), send(command('a2'))];
      await nextTick();
      const redirection = new Error(`${kind} 3999 b`);
      batches[0]?.resolve(confirmed(redirection, redirection));
      await nextTick();
      assert.deepEqual(batches[1]?.keys, `${kind}a1 ${kind}a2`);
      batches[1]?.resolve(confirmed('moved', redirection));
      assert.equal(await one, 'moved');
      await assert.rejects(other, { code: 'STATE_UNAVAILABLE' });
    });

  test('are sent with all others if no replica is required', async () => {
    const { send, batches, plain, opened } = startMasters('all');
    await send(command('a1'));
    assert.deepEqual({ plain, batches, opened }, { plain: ['a1'], batches: [], opened: [] });
  });

  test('wait for the first report on the replicas of their master', async () => {
    const { send, batches, counts } = startMasters('all');
    const write = send(command('c1'));
    await nextTick();
    assert.equal(batches.length, 0);
    counts.observe('c', 'slave0:ip=x,port=1,state=online,offset=1,lag=0\r\nmaster_replid:a');
    await nextTick();
    batches[0]?.resolve(confirmed(1));
    assert.equal(await write, 1);
  });

  test('are not sent to a master other than the one whose replicas were counted', async () => {
    const { send, batches, counts } = startMasters(1);
    counts.observe('a', 'master_replid:restarted');
    await assert.rejects(send(command('a1')), { code: 'STATE_UNAVAILABLE' });
    assert.equal(batches.length, 0);
  });
});
