import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { encryptRequestLog } from '../../../src/state/former/encrypted-request-log.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { LogWrite, RequestLog } from '../../../src/state/ports.ts';

const [first, second] = [randomBytes(32), randomBytes(32)];
const text = 'a record of the tenant merchants';

const write = (number: number): LogWrite => ({
  writer: 'one',
  number,
  ttlMs: 60_000,
  chunk: Buffer.from(text),
  index: new Map(),
  values: [{ group: 'errors', name: 'a', value: Buffer.from(text) }],
  counters: [],
});

const contentOf = async (log: RequestLog, slice: number) => [
  ...(await log.readChunks(slice, [0])).map(String),
  ...[...(await log.readValues(slice, 'errors')).values()].map(String),
];

describe('an encrypted request log', () => {
  test('stores neither the text of a chunk nor that of a value, and stores equal ones differently', async () => {
    const { requestLog } = createMemoryState();
    const encrypted = encryptRequestLog(requestLog, [first]);
    await encrypted.append(7, write(1));
    await encrypted.append(7, write(2));
    const chunks = await requestLog.readChunks(7, [0, 1]);
    const stored = [...chunks, ...(await requestLog.readValues(7, 'errors')).values()];
    for (const bytes of stored) assert.ok(bytes && !bytes.includes('merchants'));
    assert.notDeepEqual(chunks[0], chunks[1]);
    assert.deepEqual(await contentOf(encrypted, 7), [text, text]);
  });

  test('reads what was stored under an older key, and before encryption', async () => {
    const { requestLog } = createMemoryState();
    await encryptRequestLog(requestLog, [first]).append(7, write(1));
    await requestLog.append(8, write(1));
    const encrypted = encryptRequestLog(requestLog, [second, first]);
    assert.deepEqual(await contentOf(encrypted, 7), [text, text]);
    assert.deepEqual(await contentOf(encrypted, 8), [text, text]);
  });

  test('reads nothing that was stored under another key, modified, or moved to another slice', async () => {
    const { requestLog } = createMemoryState();
    const encrypted = encryptRequestLog(requestLog, [first]);
    await encrypted.append(7, write(1));
    assert.deepEqual(await contentOf(encryptRequestLog(requestLog, [second]), 7), ['undefined']);

    const [chunk = assert.fail()] = await requestLog.readChunks(7, [0]);
    await requestLog.append(8, { ...write(1), chunk, values: [] });
    assert.deepEqual(await contentOf(encrypted, 8), ['undefined']);
    const modified = Buffer.from(chunk);
    modified[modified.length - 1] = (modified.at(-1) ?? 0) ^ 1;
    await requestLog.append(9, { ...write(1), chunk: modified, values: [] });
    assert.deepEqual(await contentOf(encrypted, 9), ['undefined']);
    await requestLog.append(10, { ...write(1), chunk: chunk.subarray(0, 20), values: [] });
    assert.deepEqual(await contentOf(encrypted, 10), ['undefined']);
  });
});
