import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRecentWrites, type RecentWrite } from '../../../src/idempotency/recent-writes.ts';
import type { LedgerRow } from '../../../src/store/ledger.ts';

const key = (requestId: string) => ({ tenant: 'shop', operation: 'initiatePayment', payment: '', requestId });

function start() {
  let nowMs = 0;
  const rows = new Map<string, LedgerRow>();
  const written: string[] = [];
  const recent = createRecentWrites(async ({ requestId }) => rows.get(requestId), { now: () => nowMs });
  const keep = (requestId: string, more: Partial<RecentWrite> = {}) =>
    recent.keep({
      key: key(requestId),
      attempt: `attempt ${requestId}`,
      step: 'answered',
      bytes: 100,
      resolvableAtMs: Number.POSITIVE_INFINITY,
      writeAgain: async () => written.push(requestId),
      ...more,
    });
  return { rows, written, recent, keep, pass: (ms: number) => (nowMs += ms) };
}

describe('recent writes', () => {
  test('are written back if the database has lost them, or an earlier step of them', async () => {
    const { rows, written, recent, keep } = start();
    for (const id of ['lost', 'marked', 'stored', 'of another attempt']) keep(id);
    rows.set('marked', { attempt: 'attempt marked', step: 'sending' });
    rows.set('stored', { attempt: 'attempt stored', step: 'answered' });
    rows.set('of another attempt', { attempt: 'another', step: 'answered' });
    assert.equal(await recent.writeBack(), 3);
    assert.deepEqual(written, ['lost', 'marked', 'of another attempt']);
  });

  test('are forgotten a minute after they were written, unless they are being sent', async () => {
    const { written, recent, keep, pass } = start();
    keep('old');
    keep('sending', { step: 'sending' });
    pass(30_000);
    keep('recent');
    pass(30_001);
    recent.forgetOld();
    await recent.writeBack();
    assert.deepEqual(written, ['sending', 'recent']);
  });

  test('replace what was written with the same id before, in upper and lower case', async () => {
    const { written, recent, keep } = start();
    keep('aa');
    keep('AA');
    assert.equal(await recent.writeBack(), 1);
    assert.deepEqual(written, ['AA']);
  });

  test('that a claim shows to be lost are written back at once, except for those that were released', async () => {
    const { written, recent, keep } = start();
    keep('answered');
    keep('released', { step: 'released' });
    assert.equal(await recent.restore(key('answered')), true);
    assert.equal(await recent.restore(key('released')), false);
    assert.equal(await recent.restore(key('never sent')), false);
    assert.deepEqual(written, ['answered']);
  });

  test('are not written back by a claim when an operator may have said that they did not happen', async () => {
    const { written, recent, keep, pass } = start();
    keep('doubt', { step: 'in-doubt', resolvableAtMs: 1_000 });
    pass(1_000);
    assert.equal(await recent.restore(key('doubt')), false);
    assert.deepEqual(written, []);
  });

  test('take a bounded amount of memory: the oldest that have ended are forgotten', async () => {
    const { written, recent, keep } = start();
    keep('sending', { step: 'sending' });
    for (let number = 0; number < 80; number += 1) keep(`${number}`, { bytes: 1024 * 1024 });
    await recent.writeBack();
    assert.deepEqual([written[0], written.at(-1)], ['sending', '79']);
    assert.ok(written.length > 50 && written.length < 66, `${written.length} are remembered`);
  });

  test('that are released while their mark is written back are released again', async () => {
    const { rows, written, recent, keep } = start();
    const released = { attempt: 'attempt one', step: 'released' };
    const release = async () => {
      written.push('release');
      rows.set('one', released);
    };
    const restoreMark = async () => {
      written.push('mark');
      keep('one', { step: 'released', writeAgain: release }); // its own statement has found no row
      rows.set('one', { ...released, step: 'sending' });
    };
    keep('one', { step: 'sending', writeAgain: restoreMark });
    assert.equal(await recent.writeBack(), 1);
    assert.deepEqual([written, rows.get('one')], [['mark', 'release'], released]);
  });

  test('are tried again after a failure', async () => {
    const { recent, keep } = start();
    keep('refused', { writeAgain: () => Promise.reject(new Error('no database')) });
    await assert.rejects(recent.writeBack(), /no database/);
  });
});
