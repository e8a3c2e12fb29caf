import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { createUnreadAnswers } from '../../../src/http/unread-answers.ts';

test('E3: as many slow readers are hung up on as make room, the oldest first', () => {
  const watch = createUnreadAnswers({ writeTimeout: 60_000, maxUnread: 100 });
  /** An answer of which so many bytes are still with the gateway. @returns its connection */
  const unread = (bytes: number): Socket => {
    const socket = Object.defineProperty(new Socket(), 'writableLength', { value: bytes });
    const answer = new ServerResponse(new IncomingMessage(socket));
    watch(answer);
    answer.emit('prefinish');
    socket.setTimeout(0);
    return socket;
  };
  const small = Array.from({ length: 9 }, () => unread(10));
  const large = [unread(90), unread(90)];
  assert.deepEqual(
    [...small, ...large].map(({ destroyed }) => destroyed),
    [...small.map(() => true), true, false],
  );
});
