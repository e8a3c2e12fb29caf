import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { GatewayError, kinds } from '../../../src/flow/errors.ts';
import { answersWithin, inTime, reasonOf } from '../../../src/state/redis-answer.ts';
import { until } from '../../kit/within.ts';

const never = new Promise<never>(() => {});

describe('the answers of Redis', () => {
  test('what comes in time is passed on', async () => {
    assert.equal(await answersWithin(1_000)(async () => 'value'), 'value');
  });

  test('silence is STATE_UNAVAILABLE, to be tried again in a second', async () => {
    await assert.rejects(
      answersWithin(1)(() => never),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.equal(error.code, 'STATE_UNAVAILABLE');
        assert.equal(kinds.STATE_UNAVAILABLE.retryAfterSeconds, 1);
        assert.equal(reasonOf(error.cause), 'no answer within 1 ms');
        return true;
      },
    );
  });

  test('after silence no other command is given, until the silent one is answered after all', async () => {
    const answerTo = answersWithin(1, 60_000);
    const silent = Promise.withResolvers<string>();
    await assert.rejects(
      answerTo(() => silent.promise),
      { code: 'STATE_UNAVAILABLE' },
    );
    let given = 0;
    const next = () => answerTo(async () => ++given);
    await assert.rejects(next(), { code: 'STATE_UNAVAILABLE' });
    assert.equal(given, 0);
    silent.resolve('late');
    await silent.promise;
    assert.equal(await next(), 1);
  });

  test('silence is believed for a while only, and not at all where it says nothing of others', async () => {
    for (const restMs of [1, 0]) {
      const answerTo = answersWithin(1, restMs);
      await assert.rejects(
        answerTo(() => never),
        { code: 'STATE_UNAVAILABLE' },
      );
      await until(1_000, 'a command is given again', async () => {
        return (await answerTo(async () => 'value').catch(() => undefined)) === 'value';
      });
    }
  });

  test('an error of the server is no silence', async () => {
    const answerTo = answersWithin(1_000, 60_000);
    await assert.rejects(
      answerTo(() => Promise.reject(new Error('OOM'))),
      { code: 'STATE_UNAVAILABLE' },
    );
    assert.equal(await answerTo(async () => 'value'), 'value');
  });

  // Redis' errors carry the command that failed, and so the payment's data: they must not reach a log by way of `cause`.
  test('an error does not carry the values that were sent', async () => {
    const command = { name: 'set', args: ['key', 'canary'] };
    const failed = Promise.reject(Object.assign(new Error('OOM command not allowed'), { command }));
    await assert.rejects(
      answersWithin(1_000)(() => failed),
      (error) => {
        assert.doesNotMatch(inspect(error, { depth: 10 }), /canary/);
        assert.match(inspect(error, { depth: 10 }), /OOM command not allowed/);
        return true;
      },
    );
  });

  test('an answer that came while this process stood still is not called late', async () => {
    const answer = new Promise<string>((resolve) => {
      setTimeout(() => setImmediate(resolve, 'in time'), 1);
    });
    const awaited = inTime(5, answer);
    const start = performance.now();
    while (performance.now() - start < 20); // both timers are due now
    assert.equal(await awaited, 'in time');
  });

  test('several addresses that all refused are a reason, although that error has no message', () => {
    const refused = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' });
    assert.equal(reasonOf(refused), 'ECONNREFUSED');
    assert.equal(reasonOf('a text'), 'a text');
  });
});
