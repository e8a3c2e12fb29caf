import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { stateUnavailable } from '../../../src/flow/errors.ts';
import type { AnswerTo } from '../../../src/state/redis-answer.ts';
import { type CarryOut, inOneBreath } from '../../../src/state/redis-breath.ts';

const answerTo: AnswerTo = (give) => give();

/** A Redis that notes what it is asked together, and answers with the key. */
function startRedis(mostTogether: number, answer: (key: string) => unknown = (key) => key) {
  const questions: string[] = [];
  const carryOut: CarryOut = async (commands) => {
    questions.push(commands.map(({ name, key, words }) => [name, key, ...words].join(' ')).join(', '));
    return commands.map(({ key }) => answer(key));
  };
  return { questions, ask: inOneBreath(carryOut, answerTo, mostTogether) };
}

describe('what is asked of Redis in one breath', () => {
  test('goes in one question, in its order, and each gets its answer', async () => {
    const { questions, ask } = startRedis(64);
    const afterAMoment = async (key: string) => {
      await undefined;
      return ask('GET', key);
    };
    const answers = await Promise.all([ask('SET', 'a', 'value', 1), afterAMoment('b'), ask('GET', 'c')]);
    assert.deepEqual(answers, ['a', 'b', 'c']);
    assert.deepEqual(questions, ['SET a value 1, GET c, GET b']);
  });

  test('is another question in the next one', async () => {
    const { questions, ask } = startRedis(64);
    await ask('GET', 'a');
    await ask('GET', 'b');
    assert.deepEqual(questions, ['GET a', 'GET b']);
  });

  test('goes in several where it would keep others waiting', async () => {
    const { questions, ask } = startRedis(2);
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => ask('GET', key)));
    assert.deepEqual(answers, ['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(questions, ['GET a, GET b', 'GET c, GET d', 'GET e']);
  });

  test('goes in several where much would make little late, and the second waits for no answer to the first', async () => {
    const questions: number[] = [];
    const silent: CarryOut = (commands) => {
      questions.push(commands.length);
      return new Promise(() => {});
    };
    const ask = inOneBreath(silent, answerTo, 64);
    void ask('GET', 'a');
    void ask('SET', 'b', 'x'.repeat(1024 * 1024));
    void ask('GET', 'c');
    void ask('SET', 'd', Buffer.alloc(1024 * 1024));
    void ask('GET', 'e');
    await nextTurn();
    assert.deepEqual(questions, [2, 2, 1]);
  });

  test('is asked again for what Redis has left, because what came before was long', async () => {
    const questions: string[] = [];
    const carryOut: CarryOut = async (commands) => {
      questions.push(commands.map(({ key }) => key).join(' '));
      return commands.slice(0, 2).map(({ key }) => (key === 'a' ? null : key));
    };
    const ask = inOneBreath(carryOut, answerTo, 64);
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => ask('GET', key)));
    assert.deepEqual(answers, [null, 'b', 'c', 'd', 'e']);
    assert.deepEqual(questions, ['a b c d e', 'c d e', 'e']);
  });

  test('fails together when Redis does', async () => {
    const down = stateUnavailable(new Error('no answer'));
    const ask = inOneBreath(
      () => Promise.reject(down),
      (give) => give(),
      64,
    );
    const outcomes = await Promise.allSettled([ask('GET', 'a'), ask('GET', 'b')]);
    assert.deepEqual(outcomes, [
      { status: 'rejected', reason: down },
      { status: 'rejected', reason: down },
    ]);
  });

  test('fails alone where Redis refuses a single command, without the values that were sent', async () => {
    const refusal = Object.assign(new Error('OOM command not allowed'), { command: { args: ['canary'] } });
    const { ask } = startRedis(64, (key) => (key === 'full' ? refusal : key));
    const [full, read] = await Promise.allSettled([ask('SET', 'full', 'canary'), ask('GET', 'a')]);
    assert.deepEqual(read, { status: 'fulfilled', value: 'a' });
    assert.equal(full.status, 'rejected');
    assert.equal(full.reason.code, 'STATE_UNAVAILABLE');
    assert.match(inspect(full.reason, { depth: 10 }), /OOM command not allowed/);
    assert.doesNotMatch(inspect(full.reason, { depth: 10 }), /canary/);
  });
});
