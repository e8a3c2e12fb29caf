import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';
import { arrivedBody, readBody } from '../../../src/http/read-body.ts';

test('readBody fails with REQUEST_TIMEOUT if the client has disconnected before', async () => {
  const request = new IncomingMessage(new Socket());
  request.destroy();
  await once(request, 'close');
  await assert.rejects(readBody({ body: Buffer.alloc(0) }, request, 1_000, createBodyMemoryBudget(1_000)), {
    code: 'REQUEST_TIMEOUT',
  });
});

describe('a body that has arrived', () => {
  /** A request whose parser has received these chunks. */
  const requestWith = (chunks: readonly string[], isComplete: boolean) => {
    const request = new IncomingMessage(new Socket());
    for (const chunk of chunks) request.push(Buffer.from(chunk));
    if (isComplete) {
      request.complete = true;
      request.push(null);
    }
    return request;
  };

  test('is returned at once, in one buffer, and the request ends', async () => {
    const request = requestWith(['hel', 'lo'], true);
    const ended = once(request, 'end');
    assert.equal(String(arrivedBody(request, 5)), 'hello');
    await ended;
  });

  test('is left to readBody if it is incomplete, empty, too long, or if the client has disconnected', () => {
    const destroyed = requestWith(['hello'], true);
    destroyed.destroy();
    for (const request of [requestWith(['hello'], false), requestWith([], true), destroyed])
      assert.equal(arrivedBody(request, 5), undefined);
    assert.equal(arrivedBody(requestWith(['hello!'], true), 5), undefined);
  });
});
