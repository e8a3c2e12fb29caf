import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stateUnavailable } from '../../../src/request/errors.ts';
import { createPendingWrites } from '../../../src/state/pending-writes.ts';

/** Writes that fail until `recover` is called, and the names of those that succeeded. */
function createStore() {
  const written: string[] = [];
  let isAvailable = false;
  const write = (name: string) => async () => {
    if (!isAvailable) throw stateUnavailable();
    written.push(name);
  };
  return {
    written,
    write,
    recover: () => {
      isAvailable = true;
    },
  };
}

const createPending = () => createPendingWrites<() => Promise<void>>((write) => write());

describe('pending writes', () => {
  test('do not repeat a write that succeeded at once', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    recover();
    await pending.addAndFlush('one', write('value'));
    await pending.flush();
    assert.deepEqual(written, ['value']);
  });

  test('retry a failed write until it succeeds, and then no more', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    await pending.addAndFlush('one', write('value'));
    await assert.rejects(pending.flush(), { code: 'STATE_UNAVAILABLE' });
    recover();
    await pending.flush();
    await pending.flush();
    assert.deepEqual(written, ['value']);
  });

  test('keep only the newest write of a key', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    await pending.addAndFlush('one', write('older'));
    await pending.addAndFlush('other', write('another'));
    await pending.addAndFlush('one', write('newer'));
    recover();
    await pending.flush();
    assert.deepEqual(written.toSorted(), ['another', 'newer']);
  });

  test('keep a write that was added while an older one of its key was executed', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    const { promise, resolve } = Promise.withResolvers<void>();
    const older = pending.addAndFlush('one', () => promise);
    await pending.addAndFlush('one', write('newer'));
    resolve();
    await older;
    recover();
    await pending.flush();
    assert.deepEqual(written, ['newer']);
  });

  test('do not execute a write that a newer one has replaced and overtaken during a flush', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    const { promise: blocked, resolve: unblock } = Promise.withResolvers<void>();
    await pending.addAndFlush('one', async () => {
      await write('slow')();
      await blocked;
    });
    await pending.addAndFlush('other', write('older'));
    recover();
    const flushed = pending.flush();
    await pending.addAndFlush('other', write('newer'));
    unblock();
    await flushed;
    assert.deepEqual(written, ['slow', 'newer']);
  });

  test('reach every key although the write of one key always fails', async () => {
    const { written, write, recover } = createStore();
    const pending = createPending();
    pending.add('failing', () => Promise.reject(stateUnavailable()));
    pending.add('other', write('other'));
    recover();
    await assert.rejects(pending.flush());
    await assert.rejects(pending.flush());
    assert.deepEqual([written, pending.size()], [['other'], 1]);
  });
});
