import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createBodyMemoryBudget } from '../../../src/http/body-memory-budget.ts';
import { arrivedBody, awaitEmptyBody, readBody } from '../../../src/http/read-body.ts';
import { GatewayError } from '../../../src/request/errors.ts';

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

describe('a chunked body that must be empty', () => {
  const unexpected = () => new GatewayError('BODY_UNEXPECTED', 'no body');

  test('is accepted at once if its end has arrived, and otherwise when it arrives', async () => {
    const arrived = new IncomingMessage(new Socket());
    arrived.complete = true;
    arrived.push(null);
    assert.equal(awaitEmptyBody('context', arrived, unexpected), 'context');

    const later = new IncomingMessage(new Socket());
    const accepted = awaitEmptyBody('context', later, unexpected);
    assert.ok(accepted instanceof Promise);
    later.push(null);
    assert.equal(await accepted, 'context');
  });

  test('is refused with its first byte, and if the client disconnects before its end', async () => {
    const request = new IncomingMessage(new Socket());
    const refused = assert.rejects(async () => awaitEmptyBody('context', request, unexpected), {
      code: 'BODY_UNEXPECTED',
    });
    request.push(Buffer.from(' '));
    await refused;

    for (const isEarly of [true, false]) {
      const cut = new IncomingMessage(new Socket());
      if (isEarly) await once(cut.destroy(), 'close');
      const incomplete = assert.rejects(async () => awaitEmptyBody('context', cut, unexpected), {
        code: 'REQUEST_TIMEOUT',
      });
      cut.destroy();
      await incomplete;
    }
  });
});
