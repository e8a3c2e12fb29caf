/** Whose turn it is on a connection, on messages that no network carries. */

import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createTurns } from '../../../src/http/turns.ts';

function startTurns() {
  const begun: ServerResponse[] = [];
  const rested: Socket[] = [];
  const turns = createTurns(
    (_, answer) => begun.push(answer),
    (socket) => rested.push(socket),
  );
  const ask = (socket: Socket): ServerResponse => {
    const request = new IncomingMessage(socket);
    const answer = new ServerResponse(request);
    answer.shouldKeepAlive = true;
    turns.take(request, answer);
    return answer;
  };
  return { turns, ask, begun, rested };
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
  assert.equal(turns.areOn(socket), false);
  const answer = ask(socket);
  assert.deepEqual([turns.areOn(socket), turns.latestOn(socket)?.answer === answer], [true, true]);
  answer.emit('close');
  assert.deepEqual([turns.areOn(socket), turns.latestOn(socket), rested], [false, undefined, [socket]]);
  ask(socket);
  assert.equal(turns.areOn(socket), true);
});
