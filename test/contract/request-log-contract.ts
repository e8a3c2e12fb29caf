/** The contract tests of `RequestLog`, which every implementation of the state must pass. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { positionsOf } from '../../src/state/former/log-index.ts';
import type { LogWrite, RequestLog } from '../../src/state/ports.ts';
import type { StateUnderTest } from './state-contract.ts';

const anHourMs = 3_600_000;

const write = (number: number, more: Partial<LogWrite> = {}, writer = 'one'): LogWrite => ({
  writer,
  number,
  ttlMs: anHourMs,
  index: new Map(),
  values: [],
  counters: [],
  ...more,
});

/** Bytes that are not valid UTF-8, and a NUL. */
const bytes = (text: string) => Buffer.concat([Buffer.from([0xff, 0x00, 0xc3]), Buffer.from(text)]);

const fingerprints = (...numbers: number[]) => {
  const buffer = Buffer.alloc(4 * numbers.length);
  for (const [index, number] of numbers.entries()) buffer.writeInt32LE(number, 4 * index);
  return buffer;
};

export function testRequestLog({ skip, createStore }: StateUnderTest): void {
  describe('request log', { skip }, () => {
    test('every client reads the chunks in the order in which all clients have written them', async (t) => {
      const { client } = await createStore(t);
      const [one, other] = [(await client()).requestLog, (await client()).requestLog];
      assert.deepEqual(await one.readChunks(7, [0]), [undefined]);

      await one.append(7, write(1, { chunk: bytes('first') }));
      await other.append(7, write(1, { chunk: bytes('second') }, 'other'));
      await one.append(7, write(2, { chunk: bytes('third') }));
      await one.append(7, write(3)); // no chunk
      for (const log of [one, other]) {
        const chunks = await log.readChunks(7, [2, 0, 1, 3]);
        assert.deepEqual(chunks, [bytes('third'), bytes('first'), bytes('second'), undefined]);
      }
    });

    test('the index names each chunk that contains a fingerprint', async (t) => {
      const { requestLog } = await (await createStore(t)).client();
      const index = (...buckets: (readonly [number, Buffer])[]) => ({
        chunk: bytes(''),
        index: new Map(buckets),
      });
      await requestLog.append(7, write(1, index([0, fingerprints(1, -2)], [15, fingerprints(2)])));
      await requestLog.append(7, write(2, index([0, fingerprints(1)])));
      await requestLog.append(7, write(3, index([15, fingerprints(1, 2, 2)])));

      const found = async (bucket: number, fingerprint: number) => [
        ...positionsOf(await requestLog.readIndex(7, bucket), fingerprint),
      ];
      assert.deepEqual(await found(0, 1), [0, 1]);
      assert.deepEqual(await found(0, -2), [0]);
      assert.deepEqual(await found(15, 2), [0, 2]);
      assert.deepEqual(await found(15, 3), []);
      assert.deepEqual(await found(3, 1), []);
    });

    test('the index names the right chunk among thousands', async (t) => {
      const { requestLog } = await (await createStore(t)).client();
      const count = 700; // positions of more than one byte
      for (let number = 0; number < count; number++)
        await requestLog.append(
          7,
          write(number, { chunk: bytes(`${number}`), index: new Map([[1, fingerprints(number)]]) }),
        );
      const index = await requestLog.readIndex(7, 1);
      for (const number of [0, 255, 256, 513, count - 1]) {
        const [position = -1] = positionsOf(index, number);
        assert.deepEqual(await requestLog.readChunks(7, [position]), [bytes(`${number}`)]);
      }
    });

    test('a value replaces the former value of its name in its group', async (t) => {
      const { requestLog } = await (await createStore(t)).client();
      const value = (name: string, text: string) => ({ group: 'figures', name, value: bytes(text) }) as const;
      await requestLog.append(7, write(1, { values: [value('a', 'old'), value('__proto__', 'kept')] }));
      const values = [value('a', 'new'), { group: 'errors', name: 'a', value: bytes('other') } as const];
      await requestLog.append(7, write(2, { values }));

      assert.deepEqual(
        await requestLog.readValues(7, 'figures'),
        new Map([
          ['__proto__', bytes('kept')],
          ['a', bytes('new')],
        ]),
      );
      assert.deepEqual(await requestLog.readValues(7, 'errors'), new Map([['a', bytes('other')]]));
      assert.deepEqual(await requestLog.readValues(7, 'dictionaries'), new Map());
    });

    test('counters of all writers are added', async (t) => {
      const { requestLog } = await (await createStore(t)).client();
      const counters = (...entries: (readonly [string, number])[]) => ({
        counters: entries.map(([name, by]) => ({ name, by })),
      });
      assert.deepEqual(await requestLog.append(7, write(1, counters(['a', 5], ['b', 1]))), [5, 1]);
      assert.deepEqual(await requestLog.append(7, write(1, counters(['c', 0], ['a', 2]), 'other')), [0, 7]);
      assert.deepEqual(
        await requestLog.readCounters(7),
        new Map([
          ['a', 7],
          ['b', 1],
          ['c', 0],
        ]),
      );
    });

    test('a repeated write has no effect, and returns the counters', async (t) => {
      const { requestLog } = await (await createStore(t)).client();
      const first = write(1, {
        chunk: bytes('a'),
        index: new Map([[0, fingerprints(1)]]),
        counters: [{ name: 'a', by: 5 }],
      });
      assert.deepEqual(await requestLog.append(7, first), [5]);
      assert.deepEqual(await requestLog.append(7, first), [5]);
      assert.equal(await countChunks(requestLog, 7), 1);
      assert.deepEqual([...positionsOf(await requestLog.readIndex(7, 0), 1)], [0]);
      assert.deepEqual(await requestLog.append(7, { ...first, number: 2 }), [10]);
      assert.equal(await countChunks(requestLog, 7), 2);
    });

    test('slices, and the logs of different prefixes, are independent', async (t) => {
      const { client, otherClient } = await createStore(t);
      const [ours, theirs] = [(await client()).requestLog, (await otherClient()).requestLog];
      const all = {
        chunk: bytes('a'),
        index: new Map([[0, fingerprints(1)]]),
        values: [{ group: 'errors', name: 'a', value: bytes('a') }],
        counters: [{ name: 'a', by: 1 }],
      } as const;
      await ours.append(7, write(1, all));
      assert.deepEqual(await contentOf(ours, 7), [1, 1, 1, 1]);
      assert.deepEqual(await contentOf(ours, 8), [0, 0, 0, 0]);
      assert.deepEqual(await contentOf(theirs, 7), [0, 0, 0, 0]);
    });

    test('a slice expires as a whole', async (t) => {
      const { client, until } = await createStore(t);
      const { requestLog } = await client();
      const all = {
        ttlMs: 300,
        chunk: bytes('a'),
        index: new Map([[0, fingerprints(1)]]),
        values: [{ group: 'errors', name: 'a', value: bytes('a') }],
        counters: [{ name: 'a', by: 1 }],
      } as const;
      await requestLog.append(7, write(1, all));
      await requestLog.append(8, write(1, { ...all, ttlMs: anHourMs }));
      await until(10_000, 'the slice has expired', async () => {
        const content = await contentOf(requestLog, 7);
        return content.every((count) => count === 0);
      });
      assert.deepEqual(await contentOf(requestLog, 8), [1, 1, 1, 1]);

      await requestLog.append(7, write(1, { ...all, ttlMs: anHourMs }));
      assert.deepEqual(await contentOf(requestLog, 7), [1, 1, 1, 1]);
    });
  });
}

/** At most ten. */
const countChunks = async (log: RequestLog, slice: number): Promise<number> => {
  const chunks = await log.readChunks(slice, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  return chunks.filter((chunk) => chunk !== undefined).length;
};

/** How many chunks, fingerprints in bucket 0, values and counters the slice has. */
const contentOf = async (log: RequestLog, slice: number): Promise<readonly number[]> => [
  await countChunks(log, slice),
  positionsOf(await log.readIndex(slice, 0), 1).size,
  (await log.readValues(slice, 'errors')).size,
  (await log.readCounters(slice)).size,
];
