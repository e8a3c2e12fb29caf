/** A write before the fence: nothing of it leaves before the last step is taken, and nothing when that came too late. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/flow/errors.ts';
import { answerHead, connectedSocket, connectingSocket, failure, follow, requestOn, reset } from './fakes.ts';

/** A call at its fence: the connection is there, the last step is on its way. */
function atTheFence(socket = connectedSocket()) {
  const step = Promise.withResolvers<number>();
  const listenUntilMs = performance.now() + 60_000;
  const call = follow(10_000, { pass: () => step.promise, listenUntilMs });
  call.exchange.began(requestOn(socket));
  return { ...call, step };
}

describe('a write at its fence', () => {
  test('leaves when the step is taken, and not before', async () => {
    const call = atTheFence();
    await setImmediate();
    assert.equal(call.released(), 0);
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.equal(call.released(), 1);
    call.exchange.failed(reset);
    assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'connection_terminated']);
  });

  test('is not asked for its step before the connection is made', async () => {
    let asked = 0;
    const pass = async () => {
      asked += 1;
      return performance.now() + 1_000;
    };
    const socket = connectingSocket();
    const call = follow(10_000, { pass, listenUntilMs: performance.now() + 60_000 });
    call.exchange.began(requestOn(socket));
    await setImmediate();
    assert.equal(asked, 0);
    socket.emit('connect');
    await setImmediate();
    assert.deepEqual([asked, call.released()], [1, 1]);
    call.exchange.failed(reset);
  });

  test('never leaves if the step was taken too long ago', async () => {
    const call = atTheFence();
    call.step.resolve(performance.now() - 1);
    await setImmediate();
    assert.deepEqual(failure(call), ['STATE_UNAVAILABLE', 'proxy_internal_error']);
    assert.deepEqual([call.released(), call.abandoned()], [0, 1]);
  });

  test('never leaves if the step is refused', async () => {
    const call = atTheFence();
    call.step.reject(new GatewayError('DUPLICATE_IN_FLIGHT', 'taken over'));
    await setImmediate();
    assert.equal(failure(call)[0], 'DUPLICATE_IN_FLIGHT');
    assert.equal(call.released(), 0);
  });

  test('whose connection breaks was not sent; that is told when the step has come to its end', async () => {
    const call = atTheFence();
    call.exchange.failed(reset);
    await setImmediate();
    assert.equal(call.outcomes.length, 0);
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.deepEqual(failure(call), ['UPSTREAM_UNREACHED', 'connection_terminated']);
    assert.equal(call.released(), 0);
  });

  test('takes nothing that the connection brings for its answer', async () => {
    const call = atTheFence();
    call.exchange.answered(answerHead(201));
    assert.equal(call.outcomes.length, 0, 'an attempt on another connection must not overtake this one');
    call.step.resolve(performance.now() + 1_000);
    await setImmediate();
    assert.equal(failure(call)[0], 'UPSTREAM_UNREACHED');
    assert.equal(call.released(), 0);
  });
});
