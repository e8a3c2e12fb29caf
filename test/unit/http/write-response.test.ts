import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { writeCompleteResponse } from '../../../src/http/write-response.ts';
import { listen } from '../../kit/ports.ts';

describe('writeCompleteResponse', () => {
  for (const size of [0, 1, 16_384, 16_385, 100_000])
    test(`sends ${size} random bytes unchanged, with their length`, async (t) => {
      const body = randomBytes(size);
      const server = createServer((_, outgoing) =>
        writeCompleteResponse(outgoing, 200, [['Content-Type', 'a/b']], body),
      );
      t.after(() => server.close());
      const [response] = await once(
        get(`http://127.0.0.1:${await listen(server)}`, { agent: false }),
        'response',
      );
      assert.equal(response.headers['content-length'], String(size));
      assert.ok(body.equals(await buffer(response)));
    });
});
