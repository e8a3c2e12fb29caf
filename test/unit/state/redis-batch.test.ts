import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { setImmediate as nextTick } from 'node:timers/promises';
import { inspect } from 'node:util';
import { errorTable, GatewayError, stateUnavailable } from '../../../src/request/errors.ts';
import {
  corkPerTick,
  createCommandBatcher,
  createDeadline,
  type ExecuteBatch,
  type RedisCommand,
  reasonOf,
  type WithDeadline,
  withTimeout,
} from '../../../src/state/redis-batch.ts';

const noDeadline: WithDeadline = (send) => send();
const never = new Promise<never>(() => {});
const asSent = (result: unknown) => result;

/** A Redis that records its batches, and answers each command with its key. */
function startRedis(maxBatchSize: number, answer: (key: string) => unknown = (key) => key) {
  const batches: string[] = [];
  const executeBatch: ExecuteBatch = async (commands) => {
    batches.push(commands.map(({ name, key, args }) => [name, key, ...args].join(' ')).join(', '));
    return commands.map(({ key }) => answer(key));
  };
  return { batches, send: createSend(executeBatch, maxBatchSize) };
}

function createSend(executeBatch: ExecuteBatch, maxBatchSize: number) {
  const sendCommand = createCommandBatcher(executeBatch, noDeadline, maxBatchSize);
  return (name: string, key: string, ...args: RedisCommand['args']) =>
    sendCommand({ name, key, args }, asSent);
}

describe('the command batcher', () => {
  test('sends all commands of one tick as one batch, and resolves each with its result', async () => {
    const { batches, send } = startRedis(64);
    const sendLater = async (key: string) => {
      await undefined;
      return send('GET', key);
    };
    const results = await Promise.all([send('SET', 'a', 'value', 1), sendLater('b'), send('GET', 'c')]);
    assert.deepEqual(results, ['a', 'b', 'c']);
    assert.deepEqual(batches, ['SET a value 1, GET c, GET b']);
  });

  test('starts a new batch in the next tick', async () => {
    const { batches, send } = startRedis(64);
    await send('GET', 'a');
    await send('GET', 'b');
    assert.deepEqual(batches, ['GET a', 'GET b']);
  });

  test('splits commands into batches of the maximum size', async () => {
    const { batches, send } = startRedis(2);
    const results = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => send('GET', key)));
    assert.deepEqual(results, ['a', 'b', 'c', 'd', 'e']);
    assert.deepEqual(batches, ['GET a, GET b', 'GET c, GET d', 'GET e']);
  });

  test('splits batches after large arguments, and does not wait for the first batch before it sends the next', async () => {
    const sizes: number[] = [];
    const silent: ExecuteBatch = (commands) => {
      sizes.push(commands.length);
      return new Promise(() => {});
    };
    const send = createSend(silent, 64);
    void send('GET', 'a');
    void send('SET', 'b', 'x'.repeat(1024 * 1024));
    void send('GET', 'c');
    void send('SET', 'd', Buffer.alloc(1024 * 1024));
    void send('GET', 'e');
    await nextTick();
    assert.deepEqual(sizes, [2, 2, 1]);
  });

  test('sends commands again that Redis did not execute because earlier results were large', async () => {
    const batches: string[] = [];
    const executeBatch: ExecuteBatch = async (commands) => {
      batches.push(commands.map(({ key }) => key).join(' '));
      return commands.slice(0, 2).map(({ key }) => (key === 'a' ? null : key));
    };
    const send = createSend(executeBatch, 64);
    const results = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => send('GET', key)));
    assert.deepEqual(results, [null, 'b', 'c', 'd', 'e']);
    assert.deepEqual(batches, ['a b c d e', 'c d e', 'e']);
  });

  test('rejects a command whose result cannot be converted', async () => {
    const sendCommand = createCommandBatcher(async () => ['one', 'two'], noDeadline, 64);
    const isOne = (result: unknown) => {
      if (result !== 'one') throw new Error('unexpected');
      return true;
    };
    const sent = ['a', 'b'].map((key) => sendCommand({ name: 'GET', key, args: [] }, isOne));
    const outcomes = await Promise.allSettled(sent);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
  });

  test('rejects all commands of a batch that fails', async () => {
    const down = stateUnavailable(new Error('no answer'));
    const send = createSend(() => Promise.reject(down), 64);
    const outcomes = await Promise.allSettled([send('GET', 'a'), send('GET', 'b')]);
    assert.deepEqual(outcomes, [
      { status: 'rejected', reason: down },
      { status: 'rejected', reason: down },
    ]);
  });

  test('rejects only the command that Redis refuses, without the values that were sent', async () => {
    const refusal = Object.assign(new Error('OOM command not allowed'), { command: { args: ['canary'] } });
    const { send } = startRedis(64, (key) => (key === 'full' ? refusal : key));
    const [full, read] = await Promise.allSettled([send('SET', 'full', 'canary'), send('GET', 'a')]);
    assert.deepEqual(read, { status: 'fulfilled', value: 'a' });
    assert.equal(full.status, 'rejected');
    assert.equal(full.reason.code, 'STATE_UNAVAILABLE');
    assert.match(inspect(full.reason, { depth: 10 }), /OOM command not allowed/);
    assert.doesNotMatch(inspect(full.reason, { depth: 10 }), /canary/);
  });
});

describe('the deadline of Redis commands', () => {
  test('returns an answer that arrives in time', async () => {
    assert.equal(await createDeadline(1_000)(async () => 'value'), 'value');
  });

  test('rejects with STATE_UNAVAILABLE and Retry-After: 1 after the timeout', async () => {
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

  test('sends the next command although the server has not answered the last one in time', async () => {
    const withDeadline = createDeadline(1);
    await assert.rejects(
      withDeadline(() => never),
      { code: 'STATE_UNAVAILABLE' },
    );
    assert.equal(await withDeadline(async () => 'value'), 'value');
  });

  test('rejects with STATE_UNAVAILABLE if the command cannot be sent', async () => {
    const cannotSend = () => {
      throw new Error('not connected');
    };
    await assert.rejects(createDeadline(1_000)(cannotSend), { code: 'STATE_UNAVAILABLE' });
  });

  test('continues to send commands after an error of the server', async () => {
    const withDeadline = createDeadline(1_000);
    await assert.rejects(
      withDeadline(() => Promise.reject(new Error('OOM'))),
      { code: 'STATE_UNAVAILABLE' },
    );
    assert.equal(await withDeadline(async () => 'value'), 'value');
  });

  // Errors of ioredis contain the failed command, and so payment data, which must not reach a log through `cause`.
  test('throws errors without the values that were sent', async () => {
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

  test('accepts an answer that arrived while this process was blocked', async () => {
    const answer = new Promise<string>((resolve) => {
      setTimeout(() => setImmediate(resolve, 'in time'), 1);
    });
    const awaited = withTimeout(5, answer);
    const start = performance.now();
    while (performance.now() - start < 20); // both timers are due now
    assert.equal(await awaited, 'in time');
  });

  test('gives the error code as the reason if several addresses refused and the error has no message', () => {
    const refused = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' });
    assert.equal(reasonOf(refused), 'ECONNREFUSED');
    assert.equal(reasonOf('a text'), 'a text');
  });
});

describe('corking per tick', () => {
  /** A connection that records each chunk that reaches the system. */
  function createConnection() {
    const chunks: string[] = [];
    const connection = new Writable({
      decodeStrings: false,
      write: (chunk, _, done) => done(void chunks.push(chunk)),
      writev: (all, done) => done(void chunks.push(all.map(({ chunk }) => chunk).join(''))),
    });
    return { connection, chunks };
  }

  test('combines the writes of one tick, including those of promise callbacks', async () => {
    const { connection, chunks } = createConnection();
    const cork = corkPerTick(() => [connection]);
    const write = async (text: string) => {
      await undefined;
      cork();
      connection.write(text);
    };
    await Promise.all([write('a'), write('b'), write('c')]);
    await nextTick();
    assert.deepEqual(chunks, ['abc']);
    await write('d');
    await nextTick();
    assert.deepEqual(chunks, ['abc', 'd']);
  });

  test('delivers the writes to other connections if one is closed in the same tick', async () => {
    const { connection, chunks } = createConnection();
    const { connection: other, chunks: otherChunks } = createConnection();
    const cork = corkPerTick(() => [connection, other]);
    cork();
    connection.destroy();
    other.write('a');
    await nextTick();
    assert.deepEqual([chunks, otherChunks], [[], ['a']]);
  });
});
