import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, mock, test } from 'node:test';
import {
  answerHead,
  complete,
  connectedSocket,
  connectedTlsSocket,
  connectingSocket,
  connectingTlsSocket,
  type Followed,
  failure,
  follow,
  requestOn,
  reset,
  withTimersOfTheTest,
} from './fakes.ts';

describe('a call that waits for a connection', () => {
  withTimersOfTheTest();

  test('was never sent when the deadline passes', () => {
    const call = follow();
    mock.timers.tick(999);
    assert.equal(call.outcomes.length, 0);
    mock.timers.tick(1);

    assert.deepEqual(failure(call), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(call.abandoned(), 1);
  });

  test('is not bound by the time for connecting', () => {
    const call = follow();
    mock.timers.tick(500);
    assert.equal(call.outcomes.length, 0);
  });

  test('was never sent if the pool cannot even begin', () => {
    const call = follow();
    call.exchange.failed(new Error('no more file descriptors'));
    assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'destination_unavailable']);
  });
});

for (const [kind, socketOf, event] of [
  ['plain', connectingSocket, 'connect'],
  ['TLS', connectingTlsSocket, 'secureConnect'],
] as const) {
  const begun = (): { call: Followed; socket: Socket } => {
    const socket = socketOf();
    const call = follow();
    call.exchange.began(requestOn(socket));
    return { call, socket };
  };

  describe(`a call whose ${kind} connection is being made`, () => {
    withTimersOfTheTest();

    test('was never sent when the time for connecting passes', () => {
      const { call } = begun();
      mock.timers.tick(100);
      assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'connection_timeout']);
      assert.equal(call.abandoned(), 1);
    });

    test('was never sent when the connection breaks', () => {
      const { call } = begun();
      call.exchange.failed(reset);
      assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'connection_terminated']);
    });

    test('has the whole deadline, and an unknown outcome, once it is made', () => {
      const { call, socket } = begun();
      mock.timers.tick(99);
      socket.emit(event);
      mock.timers.tick(900);
      assert.equal(call.outcomes.length, 0);
      mock.timers.tick(1);
      assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'http_response_timeout']);
    });
  });
}

describe('a call', () => {
  withTimersOfTheTest();

  test('TCP alone is not a connection where TLS is due', () => {
    const socket = connectingTlsSocket();
    const call = follow();
    call.exchange.began(requestOn(socket));
    socket.emit('connect');
    call.exchange.failed(reset);
    assert.equal(failure(call)[0], 'UPSTREAM_UNREACHED');
  });
});

for (const [kind, socketOf] of [
  ['plain', connectedSocket],
  ['TLS', connectedTlsSocket],
] as const) {
  describe(`a call on a kept ${kind} connection`, () => {
    withTimersOfTheTest();

    const begun = () => {
      const call = follow();
      const request = requestOn(socketOf());
      call.exchange.began(request);
      return { call, request };
    };

    test('has an unknown outcome when the connection breaks', () => {
      const { call } = begun();
      call.exchange.failed(reset);
      assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'connection_terminated']);
    });

    test('fails when the bank changes the protocol, and leaves no such connection behind', () => {
      const { call, request } = begun();
      const upgraded = connectedSocket();
      request.emit('upgrade', answerHead(101), upgraded);
      assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', 'http_upgrade_failed']);
      assert.ok(upgraded.destroyed);
    });
  });
}

describe('a call', () => {
  withTimersOfTheTest();

  test('a call that is over stays over, whatever is still told', async () => {
    const call = follow();
    mock.timers.tick(1_000);
    const socket = connectingSocket();
    call.exchange.began(requestOn(socket));
    const answer = answerHead(200);
    call.exchange.answered(answer);
    complete(answer);
    call.exchange.failed(reset);
    mock.timers.tick(10_000);

    assert.deepEqual(failure(call), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(call.abandoned(), 1);
    assert.equal(socket.listenerCount('connect'), 0);
  });
});

describe('a call', () => {
  withTimersOfTheTest();

  test('a call that begins after its deadline sends nothing', () => {
    const call = follow(-5);
    mock.timers.tick(1);
    assert.equal(failure(call)[0], 'QUEUE_TIMEOUT');
  });
});
