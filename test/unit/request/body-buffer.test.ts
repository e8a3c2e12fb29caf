import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBodyBuffer } from '../../../src/request/body-buffer.ts';

describe('a body buffer', () => {
  test('returns the bytes that were appended, in chunks of any size', () => {
    const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 251));
    for (const length of [1, 2, 7, 64, 4_999, 5_000, 6_000]) {
      const body = createBodyBuffer();
      for (let at = 0; at < bytes.length; at += length) {
        const chunk = Buffer.from(bytes.subarray(at, at + length));
        assert.equal(body.append(chunk), Math.min(at + length, bytes.length));
      }
      assert.ok(body.toBuffer().equals(bytes), `chunks of ${length}`);
    }
    assert.equal(createBodyBuffer().toBuffer().length, 0);
  });

  test('does not change the appended chunks', () => {
    const [first, second] = [Buffer.from('first'), Buffer.from('second')];
    const body = createBodyBuffer();
    for (const chunk of [first, Buffer.alloc(0), second, second]) body.append(chunk);
    assert.equal(`${body.toBuffer()} ${first} ${second}`, 'firstsecondsecond first second');
  });
});
