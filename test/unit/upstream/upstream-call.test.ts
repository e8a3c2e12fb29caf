import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import type { SendWindow } from '../../../src/request/messages.ts';
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
  useFakeTime,
} from './upstream-call-fakes.ts';

describe('call that waits for a connection', () => {
  useFakeTime();

  test('fails with QUEUE_TIMEOUT at its deadline', () => {
    const started = startCall();
    mock.timers.tick(999);
    assert.equal(started.outcomes.length, 0);
    mock.timers.tick(1);

    assert.deepEqual(failure(started), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(started.closedCount(), 1);
  });

  test('is not subject to the connect timeout', () => {
    const started = startCall();
    mock.timers.tick(500);
    assert.equal(started.outcomes.length, 0);
  });

  test('fails with UPSTREAM_UNREACHED if the pool cannot open a connection', () => {
    const started = startCall();
    started.call.onError(new Error('no more file descriptors'));
    assert.deepEqual(failure(started), ['UPSTREAM_UNREACHED', 'destination_unavailable']);
  });
});

for (const [kind, socketOf, event] of [
  ['plain', connectingSocket, 'connect'],
  ['TLS', connectingTlsSocket, 'secureConnect'],
] as const) {
  const begin = (): { started: CallUnderTest; socket: Socket } => {
    const socket = socketOf();
    const started = startCall();
    started.call.onConnection(requestOn(socket));
    return { started, socket };
  };

  describe(`call whose ${kind} connection is being established`, () => {
    useFakeTime();

    test('fails with UPSTREAM_UNREACHED at the connect timeout', () => {
      const { started } = begin();
      mock.timers.tick(100);
      assert.deepEqual(failure(started), ['UPSTREAM_UNREACHED', 'connection_timeout']);
      assert.equal(started.closedCount(), 1);
    });

    test('fails with UPSTREAM_UNREACHED if the connection fails', () => {
      const { started } = begin();
      started.call.onError(reset);
      assert.deepEqual(failure(started), ['UPSTREAM_UNREACHED', 'connection_terminated']);
    });

    test('has until its deadline, and then an unknown outcome, once the connection is established', () => {
      const { started, socket } = begin();
      mock.timers.tick(99);
      socket.emit(event);
      mock.timers.tick(900);
      assert.equal(started.outcomes.length, 0);
      mock.timers.tick(1);
      assert.deepEqual(failure(started), ['OUTCOME_UNKNOWN', 'http_response_timeout']);
    });
  });
}

describe('call whose TLS handshake is not finished', () => {
  useFakeTime();

  test('fails with UPSTREAM_UNREACHED although TCP is connected', () => {
    const socket = connectingTlsSocket();
    const started = startCall();
    started.call.onConnection(requestOn(socket));
    socket.emit('connect');
    started.call.onError(reset);
    assert.equal(failure(started)[0], 'UPSTREAM_UNREACHED');
  });
});

for (const [kind, socketOf] of [
  ['plain', connectedSocket],
  ['TLS', connectedTlsSocket],
] as const) {
  describe(`call on a reused ${kind} connection`, () => {
    useFakeTime();

    const begin = () => {
      const started = startCall();
      const request = requestOn(socketOf());
      started.call.onConnection(request);
      return { started, request };
    };

    test('has an unknown outcome if the connection fails', () => {
      const { started } = begin();
      started.call.onError(reset);
      assert.deepEqual(failure(started), ['OUTCOME_UNKNOWN', 'connection_terminated']);
    });

    test('fails and closes the connection if the bank switches the protocol', () => {
      const { started, request } = begin();
      const upgraded = connectedSocket();
      request.emit('upgrade', responseHead(101), upgraded);
      assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', 'http_upgrade_failed']);
      assert.ok(upgraded.destroyed);
    });
  });
}

describe('call that has ended', () => {
  useFakeTime();

  test('ignores every later event', async () => {
    const started = startCall();
    mock.timers.tick(1_000);
    const socket = connectingSocket();
    started.call.onConnection(requestOn(socket));
    const response = responseHead(200);
    started.call.onResponse(response);
    completeResponse(response);
    started.call.onError(reset);
    mock.timers.tick(10_000);

    assert.deepEqual(failure(started), ['QUEUE_TIMEOUT', 'connection_limit_reached']);
    assert.equal(started.closedCount(), 1);
    assert.equal(socket.listenerCount('connect'), 0);
  });
});

describe('call that starts after its deadline', () => {
  useFakeTime();

  test('fails with QUEUE_TIMEOUT', () => {
    const started = startCall(-5);
    mock.timers.tick(1);
    assert.equal(failure(started)[0], 'QUEUE_TIMEOUT');
  });
});

describe('call whose response has begun', () => {
  useFakeTime();

  const begin = (rawHeaders: readonly string[] = []) => {
    const started = startCall();
    started.call.onConnection(requestOn(connectedSocket()));
    const response = responseHead(201, rawHeaders);
    started.call.onResponse(response);
    return { started, response };
  };

  test('returns status, end-to-end fields and body when the response is complete', async () => {
    const { started, response } = begin([
      ...['Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '5'],
      ...['Connection', 'X-Hop', 'X-Hop', 'gone'],
    ]);
    response.push('he');
    response.push('llo');
    completeResponse(response);
    await once(response, 'end');

    const headers = [
      ['Set-Cookie', 'a'],
      ['Set-Cookie', 'b'],
    ];
    assert.deepEqual(started.outcomes, [{ status: 201, headers, body: Buffer.from('hello') }]);
    assert.equal(started.closedCount(), 0);
  });

  test('leaves the connection open if the proxy would close it behind the response', async () => {
    const started = startCall();
    started.call.onConnection(requestOn(connectedSocket()));
    const response = responseHead(201);
    let closedByProxy = false;
    response.once('close', () => {
      closedByProxy = true; // httpxy: the last write of the request is not confirmed yet
    });
    started.call.onResponse(response);
    completeResponse(response);
    response.resume();
    await once(response, 'close');
    assert.equal(started.outcomes.length, 1);
    assert.equal(closedByProxy, false);
  });

  test('lets the proxy close the connection if more is left to send than fits into the send buffer', async () => {
    const started = startCall();
    const socket = connectedSocket();
    Object.defineProperty(socket, 'writableLength', { value: 16_385 });
    started.call.onConnection(requestOn(socket));
    const response = responseHead(413);
    let closedByProxy = false;
    response.once('close', () => {
      closedByProxy = true;
    });
    started.call.onResponse(response);
    completeResponse(response);
    response.resume();
    await once(response, 'close');
    assert.equal(closedByProxy, true);
  });

  test('accepts a body of 4 MiB and refuses one byte more', async () => {
    for (const [extra, outcome] of [
      [0, undefined],
      [1, ['UPSTREAM_MALFORMED', 'http_response_body_size']],
    ] as const) {
      const { started, response } = begin();
      response.push(Buffer.alloc(maxResponseBytes + extra));
      completeResponse(response);
      await once(response, 'end');
      assert.equal(started.outcomes.length, 1);
      if (outcome) assert.deepEqual(failure(started), outcome);
    }
  });

  test('fails with UPSTREAM_MALFORMED if the response is cut off, whether by its end or by an error', async () => {
    const { started, response } = begin();
    response.push('hal');
    response.destroy();
    await once(response, 'close');
    started.call.onError(reset);
    assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);

    const other = begin();
    other.started.call.onError(reset);
    assert.deepEqual(failure(other.started), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);
  });

  test('has an unknown outcome if the rest of the response does not arrive in time', () => {
    const { started, response } = begin();
    response.push('hal');
    mock.timers.tick(1_000);
    assert.deepEqual(failure(started), ['OUTCOME_UNKNOWN', 'http_response_timeout']);
    assert.equal(started.closedCount(), 1);
  });
});

describe('call whose response is passed on in the next batch', () => {
  useFakeTime();

  const begin = () => {
    const batch: (() => void)[] = [];
    const started = startCall(1_000, undefined, (run) => void batch.push(run));
    started.call.onConnection(requestOn(connectedSocket()));
    const response = responseHead(201);
    started.call.onResponse(response);
    const runBatch = () => {
      for (const run of batch.splice(0)) run();
    };
    return { started, response, runBatch };
  };

  test('reads a body that is complete by then, and ends the response', async () => {
    for (const text of ['hello', '']) {
      const { started, response, runBatch } = begin();
      if (text) response.push(text);
      completeResponse(response);
      assert.equal(started.outcomes.length, 0);
      const ended = once(response, 'end'); // Node then releases the connection
      runBatch();
      await ended;
      assert.deepEqual(started.outcomes, [{ status: 201, headers: [], body: Buffer.from(text) }]);
    }
  });

  test('waits for the rest of a body that is not complete by then', async () => {
    const { started, response, runBatch } = begin();
    response.push('hel');
    runBatch();
    response.push('lo');
    completeResponse(response);
    await once(response, 'end');
    assert.equal(started.outcomes.length, 0);
    runBatch();
    assert.deepEqual(started.outcomes, [{ status: 201, headers: [], body: Buffer.from('hello') }]);
  });

  test('is passed on although the connection fails after its last byte', () => {
    const { started, response, runBatch } = begin();
    completeResponse(response);
    started.call.onError(reset);
    runBatch();
    assert.deepEqual(started.outcomes, [{ status: 201, headers: [], body: Buffer.from('') }]);
  });

  test('fails if it was cut off before, whether the connection reports an error or not', async () => {
    const { started, response, runBatch } = begin();
    response.push('hel');
    response.destroy();
    await once(response, 'close');
    runBatch();
    assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);

    const other = begin();
    other.started.call.onError(reset);
    other.runBatch();
    assert.deepEqual(failure(other.started), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);
  });

  test('fails if its body is longer than 4 MiB', async () => {
    const { started, response, runBatch } = begin();
    response.push(Buffer.alloc(maxResponseBytes + 1));
    completeResponse(response);
    runBatch();
    await once(response, 'end');
    runBatch();
    assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', 'http_response_body_size']);
  });
});

describe('call that receives a response that cannot be passed on', () => {
  useFakeTime();

  for (const codings of [['gzip, chunked'], ['chunked, gzip'], ['chunked', 'chunked'], ['gzip'], ['']]) {
    test(`fails and closes its connection if Transfer-Encoding is ${codings.join(' and ')}`, () => {
      const started = startCall();
      started.call.onConnection(requestOn(connectedSocket()));
      started.call.onResponse(
        responseHead(
          201,
          codings.flatMap((coding) => ['transfer-encoding', coding]),
        ),
      );
      assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', 'http_response_transfer_coding']);
      assert.equal(started.closedCount(), 1);
    });
  }

  for (const [status, proxyError] of [
    [101, 'http_upgrade_failed'],
    [99, 'http_protocol_error'],
    [600, 'http_protocol_error'],
  ] as const) {
    test(`fails and closes its connection if the status is ${status}`, () => {
      const started = startCall();
      started.call.onConnection(requestOn(connectedSocket()));
      started.call.onResponse(responseHead(status));

      assert.deepEqual(failure(started), ['UPSTREAM_MALFORMED', proxyError]);
      assert.equal(started.closedCount(), 1);
    });
  }
});

/** A write with an established connection, which waits for its sending mark. */
function startMarking(totalMs = 10_000, lateMs = 60_000) {
  const mark = Promise.withResolvers<SendWindow>();
  let deadlines = 0;
  const started = startCall(totalMs, {
    markSending: () => mark.promise,
    onDeadline: () => void deadlines++,
    lateAnswerUntilMs: performance.now() + lateMs,
  });
  started.call.onConnection(requestOn(connectedSocket()));
  return { ...started, mark, deadlineCount: () => deadlines };
}

describe('write with a sending mark', () => {
  useFakeTime();

  test('is sent when the mark is written, and not before', async () => {
    const marking = startMarking();
    await setImmediate();
    assert.equal(marking.sentCount(), 0);
    marking.mark.resolve(windowOf(1_000));
    await setImmediate();
    assert.equal(marking.sentCount(), 1);
    marking.call.onError(reset);
    assert.deepEqual(failure(marking), ['OUTCOME_UNKNOWN', 'connection_terminated']);
  });

  test('writes the mark only when the connection is established', async () => {
    let marks = 0;
    const markSending = async () => {
      marks += 1;
      return windowOf(1_000);
    };
    const socket = connectingSocket();
    const lateAnswerUntilMs = performance.now() + 60_000;
    const started = startCall(10_000, { markSending, onDeadline() {}, lateAnswerUntilMs });
    started.call.onConnection(requestOn(socket));
    await setImmediate();
    assert.equal(marks, 0);
    socket.emit('connect');
    await setImmediate();
    assert.deepEqual([marks, started.sentCount()], [1, 1]);
    started.call.onError(reset);
  });

  test('reports its deadline once it is sent, and fails when no late response is recorded any more', async () => {
    const marking = startMarking(20, 60);
    marking.mark.resolve(windowOf(1_000));
    await setImmediate();
    mock.timers.tick(19);
    assert.deepEqual([marking.sentCount(), marking.deadlineCount()], [1, 0]);
    mock.timers.tick(1);
    assert.deepEqual([marking.deadlineCount(), marking.outcomes.length], [1, 0]);
    mock.timers.tick(40);
    assert.equal(failure(marking)[0], 'OUTCOME_UNKNOWN');
    assert.equal(marking.deadlineCount(), 1);
  });

  test('fails at its deadline while it waits for its mark', async () => {
    const marking = startMarking(20);
    mock.timers.tick(20);
    assert.equal(marking.outcomes.length, 1);
    marking.mark.resolve(windowOf(1_000));
    await setImmediate();
    assert.equal(failure(marking)[0], 'STATE_UNAVAILABLE');
    assert.deepEqual([marking.deadlineCount(), marking.sentCount()], [0, 0]);
  });

  test('is never sent after its deadline, even if the process was too busy for the timer', async () => {
    const markSending = async () => {
      mock.timers.setTime(Date.now() + 5); // fires no timer
      return windowOf(1_000);
    };
    const started = startCall(5, { markSending, onDeadline() {}, lateAnswerUntilMs: 0 });
    started.call.onConnection(requestOn(connectedSocket()));
    await setImmediate();
    assert.equal(failure(started)[0], 'QUEUE_TIMEOUT');
    assert.deepEqual([started.sentCount(), started.closedCount()], [0, 1]);
  });

  test('is never sent if the mark was written too long ago', async () => {
    const marking = startMarking();
    marking.mark.resolve(windowOf(-1));
    await setImmediate();
    assert.deepEqual(failure(marking), ['STATE_UNAVAILABLE', 'proxy_internal_error']);
    assert.deepEqual([marking.sentCount(), marking.closedCount()], [0, 1]);
  });

  test('is never sent if the mark is refused', async () => {
    const marking = startMarking();
    marking.mark.reject(new GatewayError('DUPLICATE_IN_FLIGHT', 'taken over'));
    await setImmediate();
    assert.equal(failure(marking)[0], 'DUPLICATE_IN_FLIGHT');
    assert.equal(marking.sentCount(), 0);
  });

  test('fails as not sent if its connection fails, but only after the mark is written', async () => {
    const marking = startMarking();
    marking.call.onError(reset);
    await setImmediate();
    assert.equal(marking.outcomes.length, 0);
    marking.mark.resolve(windowOf(1_000));
    await setImmediate();
    assert.deepEqual(failure(marking), ['UPSTREAM_UNREACHED', 'connection_terminated']);
    assert.equal(marking.sentCount(), 0);
  });

  test('is never sent if a response arrives before the mark is written', async () => {
    const marking = startMarking();
    marking.call.onResponse(responseHead(201));
    assert.equal(marking.outcomes.length, 0, 'a retry must not overtake the mark');
    marking.mark.resolve(windowOf(1_000));
    await setImmediate();
    assert.equal(failure(marking)[0], 'UPSTREAM_UNREACHED');
    assert.equal(marking.sentCount(), 0);
  });
});

/** In which a write that is marked now may be sent. */
function windowOf(ms: number): SendWindow {
  return { untilMs: performance.now() + ms, untilWallMs: Date.now() + ms };
}
