import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { prefersEvents } from '../../../src/http/accept.ts';

describe('server-sent events', () => {
  test('are preferred if Accept ranks them highest, or names them first', () => {
    for (const accept of [
      'text/event-stream',
      'Text/Event-Stream; charset=utf-8',
      'text/event-stream, application/json;q=0.9, */*;q=0.1',
      'application/json;q=0.9, text/event-stream',
      'text/event-stream, application/json',
    ])
      assert.ok(prefersEvents(accept), accept);
  });

  test('are not preferred if Accept ranks another format higher, or does not name them', () => {
    for (const accept of [
      undefined,
      '',
      '*/*',
      'text/*',
      'application/json, text/event-stream',
      'text/event-stream;q=0.5, application/json',
      'text/event-stream;q=0',
      'x-text/event-streams',
    ])
      assert.equal(prefersEvents(accept), false, accept);
  });
});
