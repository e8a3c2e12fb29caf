import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorTable, GatewayError, outcomeUnknown } from '../../../src/request/errors.ts';
import { type FailedAttempt, mayRetry } from '../../../src/upstream/retry.ts';
import { bankUnreachable, connectionBroken } from '../../../src/upstream/upstream-errors.ts';

const unreachable = bankUnreachable(new Error('refused'));
const reset = connectionBroken(new Error('reset'));
const lanes = ['write', 'read', 'status'] as const;

const failed = (over: Partial<FailedAttempt>): FailedAttempt => ({
  lane: 'read',
  error: unreachable,
  reusedSocket: false,
  responseStarted: false,
  remainingMs: 1_000,
  ...over,
});

describe('retry of a failed call', () => {
  for (const lane of lanes) {
    test(`is allowed for a ${lane} call that got no connection`, () => assert.ok(mayRetry(failed({ lane }))));
  }

  for (const lane of ['read', 'status'] as const) {
    test(`is allowed for a ${lane} call whose reused connection broke before the first byte of a response`, () => {
      assert.ok(mayRetry(failed({ lane, error: reset, reusedSocket: true })));
    });
  }
  const cases: Readonly<Record<string, Partial<FailedAttempt>>> = {
    'a call past its deadline': { remainingMs: 0 },
    'a call whose timer fired a fraction of a millisecond before the deadline': { remainingMs: 0.9 },
    'a payment whose reused connection broke': { lane: 'write', error: reset, reusedSocket: true },
    'a read whose new connection broke': { error: reset },
    'a read whose response had begun': { error: reset, reusedSocket: true, responseStarted: true },
    'a read without a response in time': { error: outcomeUnknown(), reusedSocket: true },
  };
  for (const [name, over] of Object.entries(cases)) {
    test(`is refused for ${name}`, () => assert.equal(mayRetry(failed(over)), false));
  }

  test('is refused for any call with another error', () => {
    for (const code of Object.keys(errorTable) as (keyof typeof errorTable)[]) {
      if (code === 'UPSTREAM_UNREACHED') continue;
      const error = new GatewayError(code, 'simulated');
      for (const lane of lanes) {
        assert.equal(mayRetry(failed({ lane, error, reusedSocket: true })), false, code);
      }
    }
  });
});
