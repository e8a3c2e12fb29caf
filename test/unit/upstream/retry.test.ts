import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable, GatewayError, outcomeUnknown } from '../../../src/request/errors.ts';
import { type FailedAttempt, mayRetry } from '../../../src/upstream/retry.ts';
import { bankUnreachable, connectionBroken } from '../../../src/upstream/upstream-errors.ts';

const never = bankUnreachable(new Error('refused'));
const reset = connectionBroken(new Error('reset'));
const lanes = ['write', 'read', 'status'] as const;

const failed = (over: Partial<FailedAttempt>): FailedAttempt => ({
  lane: 'read',
  error: never,
  reusedSocket: false,
  responseStarted: false,
  remainingMs: 1_000,
  ...over,
});

describe('a call is sent once more', () => {
  for (const lane of lanes) {
    test(`if no connection was made: ${lane}`, () => assert.ok(mayRetry(failed({ lane }))));
  }

  for (const lane of ['read', 'status'] as const) {
    test(`if a connection that was used before broke without a byte of an answer: ${lane}`, () => {
      assert.ok(mayRetry(failed({ lane, error: reset, reusedSocket: true })));
    });
  }
});

describe('a call is not sent again', () => {
  const cases: Readonly<Record<string, Partial<FailedAttempt>>> = {
    'if its time is over': { remainingMs: 0 },
    'if a payment met a connection that broke': { lane: 'write', error: reset, reusedSocket: true },
    'if a new connection broke': { error: reset },
    'if an answer had begun': { error: reset, reusedSocket: true, responseStarted: true },
    'if the bank did not answer in time': { error: outcomeUnknown(), reusedSocket: true },
  };
  for (const [when, over] of Object.entries(cases)) {
    test(when, () => assert.equal(mayRetry(failed(over)), false));
  }

  test('if anything else happened', () => {
    for (const code of Object.keys(errorTable) as (keyof typeof errorTable)[]) {
      if (code === 'UPSTREAM_UNREACHED') continue;
      const error = new GatewayError(code, 'as the test says');
      for (const lane of lanes) {
        assert.equal(mayRetry(failed({ lane, error, reusedSocket: true })), false, code);
      }
    }
  });
});
