/** Whose turn it is on a connection, on messages that no network carries. */

import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createRequestQueue, createSlowReaderLimit } from '../../../src/http/connection.ts';
import type { BatchScheduler } from '../../../src/request/batch-scheduler.ts';
import { GatewayError } from '../../../src/request/errors.ts';

const atOnce: BatchScheduler = (goOn) => goOn();

function startTurns(inStep = atOnce) {
  const begun: ServerResponse[] = [];
  const told: unknown[] = [];
  const rested: Socket[] = [];
  const turns = createRequestQueue(
    (request, answer) => {
      begun.push(answer);
      request.on('error', (error) => told.push(error));
    },
    (socket) => rested.push(socket),
    inStep,
  );
  const ask = (socket: Socket): ServerResponse => {
    const request = new IncomingMessage(socket);
    const answer = new ServerResponse(request);
    answer.shouldKeepAlive = true;
    turns.enqueue(request, answer);
    return answer;
  };
  return { turns, ask, begun, told, rested };
}

describe('when the connections are to be given up', () => {
  test('an answer whose head is not written yet says so, and nothing is begun behind it', () => {
    const { turns, ask, begun } = startTurns();
    const socket = new Socket();
    const [running, waiting] = [ask(socket), ask(socket)];
    turns.drain();
    assert.equal(running.shouldKeepAlive, false);
    running.emit('close');
    assert.deepEqual([begun.includes(running), begun.includes(waiting)], [true, false]);
  });

  test('an answer whose head is written is left as it is, and the one behind it says so', () => {
    const { turns, ask, begun } = startTurns();
    const socket = new Socket();
    const [running, waiting] = [ask(socket), ask(socket)];
    running.writeHead(200);
    turns.drain();
    assert.equal(running.shouldKeepAlive, true);
    running.emit('close');
    assert.deepEqual([begun.length, waiting.shouldKeepAlive], [2, false]);
  });

  test('the answer to a request that comes only then says so as well', () => {
    const { turns, ask } = startTurns();
    turns.drain();
    assert.equal(ask(new Socket()).shouldKeepAlive, false);
  });
});

test('of a connection that rests nothing is kept, and it is busy with what comes next', () => {
  const { turns, ask, rested } = startTurns();
  const socket = new Socket();
  assert.equal(turns.isBusy(socket), false);
  const answer = ask(socket);
  assert.deepEqual([turns.isBusy(socket), turns.latestOn(socket)?.answer === answer], [true, true]);
  answer.emit('close');
  assert.deepEqual([turns.isBusy(socket), turns.latestOn(socket), rested], [false, undefined, [socket]]);
  ask(socket);
  assert.equal(turns.isBusy(socket), true);
});

describe('until those that came with it may begin as well', () => {
  /** Nobody begins before `go` is called. */
  function startHeldBack() {
    const waiting: (() => void)[] = [];
    const started = startTurns((goOn) => waiting.push(goOn));
    return { ...started, go: () => waiting.splice(0).forEach((goOn) => void goOn()) };
  }

  test('a request is due, but not begun', () => {
    const { turns, ask, begun, go } = startHeldBack();
    const socket = new Socket();
    const answer = ask(socket);
    assert.deepEqual([turns.isBusy(socket), begun], [true, []]);
    go();
    assert.deepEqual(begun, [answer]);
  });

  test('what is found wrong with the rest of it is kept for it', () => {
    const { turns, ask, told, go } = startHeldBack();
    const socket = new Socket();
    ask(socket);
    const error = new GatewayError('HEADER_MALFORMED', 'This is not a well-formed HTTP/1.1 request.');
    turns.failLatest(socket, error);
    assert.deepEqual(told, []);
    go();
    assert.deepEqual(told, [error]);
  });

  test('who hangs up is not served', () => {
    const { ask, begun, go } = startHeldBack();
    const answer = ask(new Socket());
    Object.defineProperty(answer, 'closed', { value: true });
    go();
    assert.deepEqual(begun, []);
  });
});

test('E3: as many slow readers are hung up on as make room, the oldest first', () => {
  const watch = createSlowReaderLimit({ writeTimeout: 60_000, maxUnread: 100 });
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
