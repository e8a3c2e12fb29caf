import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, mock, test } from 'node:test';
import { maxAnswerBytes } from '../../../src/upstream/exchange.ts';
import {
  answerHead,
  complete,
  connectedSocket,
  failure,
  follow,
  requestOn,
  reset,
  withTimersOfTheTest,
} from './fakes.ts';

describe('a call whose answer has begun', () => {
  withTimersOfTheTest();

  const begun = (rawHeaders: readonly string[] = []) => {
    const call = follow();
    call.exchange.began(requestOn(connectedSocket()));
    const answer = answerHead(201, rawHeaders);
    call.exchange.answered(answer);
    return { call, answer };
  };

  test('gives status, end-to-end fields and bytes when all has come', async () => {
    const { call, answer } = begun([
      ...['Set-Cookie', 'a', 'Set-Cookie', 'b', 'Content-Length', '5'],
      ...['Connection', 'X-Hop', 'X-Hop', 'gone'],
    ]);
    answer.push('he');
    answer.push('llo');
    complete(answer);
    await once(answer, 'end');

    const headers = [
      ['Set-Cookie', 'a'],
      ['Set-Cookie', 'b'],
    ];
    assert.deepEqual(call.outcomes, [{ status: 201, headers, body: Buffer.from('hello') }]);
    assert.equal(call.abandoned(), 0);
  });

  test('takes an answer of exactly 4 MiB, and not a byte more', async () => {
    for (const [extra, outcome] of [
      [0, undefined],
      [1, ['UPSTREAM_MALFORMED', 'http_response_body_size']],
    ] as const) {
      const { call, answer } = begun();
      answer.push(Buffer.alloc(maxAnswerBytes + extra));
      complete(answer);
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
    call.exchange.failed(reset);
    assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);

    const other = begun();
    other.call.exchange.failed(reset);
    assert.deepEqual(failure(other.call), ['UPSTREAM_MALFORMED', 'http_response_incomplete']);
  });

  test('has an unknown outcome if the rest does not come in time', () => {
    const { call, answer } = begun();
    answer.push('hal');
    mock.timers.tick(1_000);
    assert.deepEqual(failure(call), ['OUTCOME_UNKNOWN', 'http_response_timeout']);
    assert.equal(call.abandoned(), 1);
  });
});

for (const [status, proxyError] of [
  [101, 'http_upgrade_failed'],
  [99, 'http_protocol_error'],
  [600, 'http_protocol_error'],
] as const) {
  test(`a final answer cannot have status ${status}, and its connection is closed`, () => {
    const call = follow();
    call.exchange.began(requestOn(connectedSocket()));
    call.exchange.answered(answerHead(status));

    assert.deepEqual(failure(call), ['UPSTREAM_MALFORMED', proxyError]);
    assert.equal(call.abandoned(), 1);
  });
}
