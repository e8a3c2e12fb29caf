/**
 * Redis loses writes that it has confirmed, while payments are pending at the bank. Every payment is repeated on several
 * instances, during and after the loss; initiations are counted at the bank.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LossReport } from '../kit/loss-report.ts';
import { type LossRunOptions, runLoss } from '../kit/loss-run.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { type RedisLoss, redisLosses } from '../kit/redis-losses.ts';

const size = { instances: 2, payments: 16, isLocal: true } as const satisfies Partial<LossRunOptions>;

describe('a payment on one of two instances', { skip: skipWithoutRedisServer, concurrency: 2 }, () => {
  for (const loss of Object.keys(redisLosses) as RedisLoss[]) {
    test(`is made once when ${loss}, and payments continue without an operator`, async (t) => {
      const report = await runLoss(t, { loss, ...size });
      assertPaidOnce(report);
      assert.doesNotMatch(report.audit, /accept loss/);
    });
  }

  test('is made once when a failover loses the last writes, although no replica confirms the record of a payment', async (t) => {
    const state = { confirm: { replicas: 0 } };
    assertPaidOnce(await runLoss(t, { loss: 'a failover loses the last writes', state, ...size }));
  });

  for (const firstInstance of ['is killed', 'is killed and restarted'] as const) {
    test(`is made once when Redis is flushed while the other instance ${firstInstance}, and payments continue when an operator accepts the loss`, async (t) => {
      const report = await runLoss(t, { loss: 'Redis is flushed', firstInstance, ...size });
      assertPaidOnce(report);
      assertReported(report);
      assert.match(report.audit, /accept loss/);
    });
  }

  for (const loss of ['Redis is flushed', 'one shard of a cluster comes back empty'] as const) {
    test(`is made once when ${loss} while the other instance is paused for 10 s, and payments continue when it resumes`, async (t) => {
      const report = await runLoss(t, { loss, firstInstance: 'is paused', ...size });
      assertPaidOnce(report);
      assertReported(report);
      assert.doesNotMatch(report.audit, /accept loss/);
    });
  }
});

function assertPaidOnce(report: LossReport): void {
  assert.deepEqual(report.paidTwice, []);
  assert.deepEqual(report.forbiddenAnswers, {});
  assert.equal(report.executedWhileMissing, 0);
  for (const text of report.refusalTexts)
    assert.match(text, /"text":"[^"]*\b(state|Redis|registration of this instance)\b/);
  for (const ofInstance of report.reports) assert.equal(ofInstance.at(-1)?.status, 'ok');
}

/** An instance reported the loss, its cause, and which instance is missing; TPP systems learnt the cause as well. */
function assertReported({ reports, refusalTexts }: LossReport): void {
  const lost = reports.flat().filter(({ status, missing }) => status === 'lost' && missing.length === 1);
  assert.ok(lost.length > 0, JSON.stringify(reports));
  for (const { cause, since } of lost) {
    assert.match(cause ?? '', /has lost data/);
    assert.ok(!Number.isNaN(Date.parse(since ?? '')));
  }
  assert.ok(refusalTexts.some((text) => text.includes('has lost data')));
}
