import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { GatewayError, kinds } from '../../../src/flow/errors.ts';
import { answersWithin, inTime, reasonOf } from '../../../src/state/redis-answer.ts';

const never = new Promise<never>(() => {});

describe('the answers of Redis', () => {
  test('what comes in time is passed on', async () => {
    assert.equal(await answersWithin(1_000)(Promise.resolve('value')), 'value');
  });

  test('silence is STATE_UNAVAILABLE, to be tried again in a second', async () => {
    await assert.rejects(answersWithin(1)(never), (error) => {
      assert.ok(error instanceof GatewayError);
      assert.equal(error.code, 'STATE_UNAVAILABLE');
      assert.equal(kinds.STATE_UNAVAILABLE.retryAfterSeconds, 1);
      assert.equal(reasonOf(error.cause), 'no answer within 1 ms');
      return true;
    });
  });

  // Redis' errors carry the command that failed, and so the payment's data: they must not reach a log by way of `cause`.
  test('an error does not carry the values that were sent', async () => {
    const command = { name: 'set', args: ['key', 'canary'] };
    const failed = Promise.reject(Object.assign(new Error('OOM command not allowed'), { command }));
    await assert.rejects(answersWithin(1_000)(failed), (error) => {
      assert.doesNotMatch(inspect(error, { depth: 10 }), /canary/);
      assert.match(inspect(error, { depth: 10 }), /OOM command not allowed/);
      return true;
    });
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
