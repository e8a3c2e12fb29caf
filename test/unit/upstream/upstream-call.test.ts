import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import { maxResponseBytes } from '../../../src/upstream/upstream-call.ts';
import {
  type CallUnderTest,
  completeResponse,
  connectedSocket,
  connectedTlsSocket,
  connectingSocket,
  connectingTlsSocket,
  failure,
  requestOn,
  reset,
  responseHead,
  startCall,
  useMockTimers,
} from './upstream-call-fakes.ts';

describe('a call that waits for a connection', () => {
  useMockTimers();

  test('was never sent when the deadline passes', () => {
    const call = startCall();
    mock.timers.tick(999);
    assert.equal(call.outcomes.length, 0);
    mock.timers.tick(1);

    assert.deepEqual(failure(call), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(call.closedCount(), 1);
  });

  test('is not bound by the time for connecting', () => {
    const call = startCall();
    mock.timers.tick(500);
    assert.equal(call.outcomes.length, 0);
  });

  test('was never sent if the pool cannot even begin', () => {
    const call = startCall();
    call.call.onError(new Error('no more file descriptors'));
    assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'destination_unavailable']);
  });
});

for (const [kind, socketOf, event] of [
  ['plain', connectingSocket, 'connect'],
  ['TLS', connectingTlsSocket, 'secureConnect'],
] as const) {
  const begun = (): { call: CallUnderTest; socket: Socket } => {
    const socket = socketOf();
    const call = startCall();
    call.call.onConnection(requestOn(socket));
    return { call, socket };
  };

  describe(`a call whose ${kind} connection is being made`, () => {
    useMockTimers();

    test('was never sent when the time for connecting passes', () => {
      const { call } = begun();
      mock.timers.tick(100);
      assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'connection_timeout']);
      assert.equal(call.closedCount(), 1);
    });

    test('was never sent when the connection breaks', () => {
      const { call } = begun();
      call.call.onError(reset);
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
  useMockTimers();

  test('TCP alone is not a connection where TLS is due', () => {
    const socket = connectingTlsSocket();
    const call = startCall();
    call.call.onConnection(requestOn(socket));
    socket.emit('connect');
    call.call.onError(reset);
    assert.equal(failure(call)[0], 'UPSTREAM_UNREACHED');
  });
});

for (const [kind, socketOf] of [
  ['plain', connectedSocket],
  ['TLS', connectedTlsSocket],
] as const) {
  describe(`a call on a kept ${kind} connection`, () => {
    useMockTimers();

    const begun = () => {
      const call = startCall();
      const request = requestOn(socketOf());
      call.call.onConnection(request);
      return { call, request };
    };

    test('has an unknown outcome when the connection breaks', () => {
      const { call } = begun();
      call.call.onError(reset);
      assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'connection_terminated']);
    });

    test('fails when the bank changes the protocol, and leaves no such connection behind', () => {
      const { call, request } = begun();
      const upgraded = connectedSocket();
      request.emit('upgrade', responseHead(101), upgraded);
      assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', 'http_upgrade_failed']);
      assert.ok(upgraded.destroyed);
    });
  });
}

describe('a call', () => {
  useMockTimers();

  test('a call that is over stays over, whatever is still told', async () => {
    const call = startCall();
    mock.timers.tick(1_000);
    const socket = connectingSocket();
    call.call.onConnection(requestOn(socket));
    const answer = responseHead(200);
    call.call.onResponse(answer);
    completeResponse(answer);
    call.call.onError(reset);
    mock.timers.tick(10_000);

    assert.deepEqual(failure(call), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(call.closedCount(), 1);
    assert.equal(socket.listenerCount('connect'), 0);
  });
});

describe('a call', () => {
  useMockTimers();

  test('a call that begins after its deadline sends nothing', () => {
    const call = startCall(-5);
    mock.timers.tick(1);
    assert.equal(failure(call)[0], 'QUEUE_TIMEOUT');
  });
});

describe('a call whose answer has begun', () => {
  useMockTimers();

  const begun = (rawHeaders: readonly string[] = []) => {
    const call = startCall();
    call.call.onConnection(requestOn(connectedSocket()));
    const answer = responseHead(201, rawHeaders);
    call.call.onResponse(answer);
    return { call, answer };
  };

  test('gives status, end-to-end fields and bytes when all has come', async () => {
    const { call, answer } = begun([
      ...['Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '5'],
      ...['Connection', 'X-Hop', 'X-Hop', 'gone'],
    ]);
    answer.push('he');
    answer.push('llo');
    completeResponse(answer);
    await once(answer, 'end');

    const headers = [
      ['Set-Cookie', 'a'],
      ['Set-Cookie', 'b'],
    ];
    assert.deepEqual(call.outcomes, [{ status: 201, headers, body: Buffer.from('hello') }]);
    assert.equal(call.closedCount(), 0);
  });

  test('takes an answer of exactly 4 MiB, and not a byte more', async () => {
    for (const [extra, outcome] of [
      [0, undefined],
      [1, ['UPSTREAM_MALFORMED', 'http_response_body_size']],
    ] as const) {
      const { call, answer } = begun();
      answer.push(Buffer.alloc(maxResponseBytes + extra));
      completeResponse(answer);
      await once(answer, 'end');
      assert.equal(call.outcomes.length, 1);
      if (outcome) assert.deepEqual(failure(call), outcome);
    }
  });

  test('is malformed if the answer is cut off, whoever tells it first', async () => {
    const { call, answer } = begun();
    answer.push('hal');
    answer.destroy();
    await once(answer, 'close');
    call.call.onError(reset);
    assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);

    const other = begun();
    other.call.call.onError(reset);
    assert.deepEqual(failure(other.call), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);
  });

  test('has an unknown outcome if the rest does not come in time', () => {
    const { call, answer } = begun();
    answer.push('hal');
    mock.timers.tick(1_000);
    assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'http_response_timeout']);
    assert.equal(call.closedCount(), 1);
  });
});

for (const [status, proxyError] of [
  [101, 'http_upgrade_failed'],
  [99, 'http_protocol_error'],
  [600, 'http_protocol_error'],
] as const) {
  test(`a final answer cannot have status ${status}, and its connection is closed`, () => {
    const call = startCall();
    call.call.onConnection(requestOn(connectedSocket()));
    call.call.onResponse(responseHead(status));

    assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', proxyError]);
    assert.equal(call.closedCount(), 1);
  });
}

// MERGED HEADER (rewrite or remove):
/* A write before the fence: nothing of it leaves before the last step is taken, and nothing when that came too late. */

/** A call at its fence: the connection is there, the last step is on its way. */
function atTheFence(socket = connectedSocket()) {
  const step = Promise.withResolvers<number>();
  const lateAnswerUntilMs = performance.now() + 60_000;
  const call = startCall(10_000, { markSending: () => step.promise, lateAnswerUntilMs });
  call.call.onConnection(requestOn(socket));
  return { ...call, step };
}

describe('a write at its fence', () => {
  test('leaves when the step is taken, and not before', async () => {
    const call = atTheFence();
    await setImmediate();
    assert.equal(call.sentCount(), 0);
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.equal(call.sentCount(), 1);
    call.call.onError(reset);
    assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'connection_terminated']);
  });

  test('is not asked for its step before the connection is made', async () => {
    let asked = 0;
    const markSending = async () => {
      asked += 1;
      return performance.now() + 1_000;
    };
    const socket = connectingSocket();
    const call = startCall(10_000, { markSending, lateAnswerUntilMs: performance.now() + 60_000 });
    call.call.onConnection(requestOn(socket));
    await setImmediate();
    assert.equal(asked, 0);
    socket.emit('connect');
    await setImmediate();
    assert.deepEqual([asked, call.sentCount()], [1, 1]);
    call.call.onError(reset);
  });

  test('never leaves if the step was taken too long ago', async () => {
    const call = atTheFence();
    call.step.resolve(performance.now() - 1);
    await setImmediate();
    assert.deepEqual(failure(call), ['STATE_UNAVAILABLE', 'proxy_internal_error']);
    assert.deepEqual([call.sentCount(), call.closedCount()], [0, 1]);
  });

  test('never leaves if the step is refused', async () => {
    const call = atTheFence();
    call.step.reject(new GatewayError('DUPLICATE_IN_FLIGHT', 'taken over'));
    await setImmediate();
    assert.equal(failure(call)[0], 'DUPLICATE_IN_FLIGHT');
    assert.equal(call.sentCount(), 0);
  });

  test('whose connection breaks was not sent; that is told when the step has come to its end', async () => {
    const call = atTheFence();
    call.call.onError(reset);
    await setImmediate();
    assert.equal(call.outcomes.length, 0);
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'connection_terminated']);
    assert.equal(call.sentCount(), 0);
  });

  test('takes nothing that the connection brings for its answer', async () => {
    const call = atTheFence();
    call.call.onResponse(responseHead(201));
    assert.equal(call.outcomes.length, 0, 'an attempt on another connection must not overtake this one');
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.equal(failure(call)[0], 'UPSTREAM_UNREACHED');
    assert.equal(call.sentCount(), 0);
  });
});
