import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { errorTable, GatewayError, stateUnavailable } from '../../../src/request/errors.ts';
import {
  corkPerTick,
  createCommandBatcher,
  createDeadline,
  type ExecuteBatch,
  reasonOf,
  type WithDeadline,
  withTimeout,
} from '../../../src/state/redis-batch.ts';
import { until } from '../../kit/within.ts';

const answerTo: WithDeadline = (give) => give();

/** A Redis that notes what it is asked together, and answers with the key. */
function startRedis(mostTogether: number, answer: (key: string) => unknown = (key) => key) {
  const questions: string[] = [];
  const carryOut: ExecuteBatch = async (commands) => {
    questions.push(commands.map(({ name, key, words }) => [name, key, ...words].join(' ')).join(', '));
    return commands.map(({ key }) => answer(key));
  };
  return { questions, ask: createCommandBatcher(carryOut, answerTo, mostTogether) };
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
    const silent: ExecuteBatch = (commands) => {
      questions.push(commands.length);
      return new Promise(() => {});
    };
    const ask = createCommandBatcher(silent, answerTo, 64);
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
    const carryOut: ExecuteBatch = async (commands) => {
      questions.push(commands.map(({ key }) => key).join(' '));
      return commands.slice(0, 2).map(({ key }) => (key === 'a' ? null : key));
    };
    const ask = createCommandBatcher(carryOut, answerTo, 64);
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => ask('GET', key)));
    assert.deepEqual(answers, [null, 'b', 'c', 'd', 'e']);
    assert.deepEqual(questions, ['a b c d e', 'c d e', 'e']);
  });

  test('fails together when Redis does', async () => {
    const down = stateUnavailable(new Error('no answer'));
    const ask = createCommandBatcher(
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

const never = new Promise<never>(() => {});

describe('the answers of Redis', () => {
  test('what comes in time is passed on', async () => {
    assert.equal(await createDeadline(1_000)(async () => 'value'), 'value');
  });

  test('silence is STATE_UNAVAILABLE, to be tried again in a second', async () => {
    await assert.rejects(
      createDeadline(1)(() => never),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.equal(error.code, 'STATE_UNAVAILABLE');
        assert.equal(errorTable.STATE_UNAVAILABLE.retryAfterSeconds, 1);
        assert.equal(reasonOf(error.cause), 'no answer within 1 ms');
        return true;
      },
    );
  });

  test('after silence no other command is given, until the silent one is answered after all', async () => {
    const answerTo = createDeadline(1, 60_000);
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
      const answerTo = createDeadline(1, restMs);
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
    const answerTo = createDeadline(1_000, 60_000);
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
      createDeadline(1_000)(() => failed),
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
    const awaited = withTimeout(5, answer);
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

/** A connection that keeps what reached the system in one piece. */
function startConnection() {
  const pieces: string[] = [];
  const connection = new Writable({
    decodeStrings: false,
    write: (chunk, _, done) => done(void pieces.push(chunk)),
    writev: (chunks, done) => done(void pieces.push(chunks.map(({ chunk }) => chunk).join(''))),
  });
  return { connection, pieces };
}

test('what several give while the promises run that are due leaves in one piece', async () => {
  const { connection, pieces } = startConnection();
  const holdBack = corkPerTick(() => [connection]);
  const give = async (text: string) => {
    await undefined;
    holdBack();
    connection.write(text);
  };
  await Promise.all([give('a'), give('b'), give('c')]);
  await nextTurn();
  assert.deepEqual(pieces, ['abc']);
  await give('d');
  await nextTurn();
  assert.deepEqual(pieces, ['abc', 'd']);
});

test('a connection that is closed meanwhile harms nobody', async () => {
  const { connection, pieces } = startConnection();
  const { connection: other, pieces: others } = startConnection();
  const holdBack = corkPerTick(() => [connection, other]);
  holdBack();
  connection.destroy();
  other.write('a');
  await nextTurn();
  assert.deepEqual([pieces, others], [[], ['a']]);
});
