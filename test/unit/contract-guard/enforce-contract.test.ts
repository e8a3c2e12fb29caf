import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Deviation } from '../../../src/contract/deviation.ts';
import { enforceContract } from '../../../src/contract-guard/enforce-contract.ts';
import type { GuardedEnvironment } from '../../../src/contract-guard/guarded-environments.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { RoutedRequest, WriteAheadMark } from '../../../src/request/messages.ts';
import { answer, environment, initiation, judge } from './messages.ts';

const harmful: Deviation = {
  level: 'harmful',
  rule: 'required',
  path: 'body/#/creditorName',
  effect: 'refused',
};
const notable: Deviation = { ...harmful, level: 'notable', rule: 'unknown', effect: 'ignored' };

/** Only its presence matters here: the request has a claim. */
const claim: WriteAheadMark = {
  followsReleasedAttempt: false,
  lateAnswerMs: 0,
  markSending: async () => ({ untilMs: 0, untilWallMs: 0 }),
  onDeadline() {},
  namePayment() {},
};

interface Setup {
  readonly guarded?: GuardedEnvironment | undefined;
  readonly deviations?: readonly Deviation[] | undefined;
  readonly request?: RoutedRequest;
}

/** @returns the code of the refusal, or `sent`; with the error and the requests that were queued for the report */
async function run({ guarded = environment({ requests: 'enforce' }), deviations, request }: Setup) {
  const queued: (readonly Deviation[] | undefined)[] = [];
  const stage = enforceContract({
    guarded: { of: () => guarded, all: [], prepareEnforced: async () => {} },
    contractGuard: {
      checkNow: async () => deviations,
      addRequest: (_environment, _request, own) => void queued.push(own),
    },
  });
  const sent: RoutedRequest[] = [];
  const result = await stage(request ?? initiation('{}', { writeAheadMark: claim }), async (passed) => {
    sent.push(passed);
    return answer();
  }).catch((thrown: unknown) => thrown);
  const error = result instanceof GatewayError ? result : undefined;
  assert.equal(sent.length, error ? 0 : 1);
  return { code: error?.code ?? 'sent', error, queued };
}

describe('an enforced contract', () => {
  test('refuses harmful requests only, with schema path and rule', async () => {
    const { code, error } = await run({ deviations: [notable, harmful] });
    assert.equal(code, 'CONTRACT_VIOLATED');
    assert.equal(error?.field, harmful.path);
    assert.match(error?.message ?? '', /body\/#\/creditorName \(required\); nothing was sent/);
    assert.equal((await run({ deviations: [notable] })).code, 'sent');
    assert.equal((await run({ deviations: [] })).code, 'sent');
  });

  test('lists five deviations, and the number of the others', async () => {
    const deviations = Array.from({ length: 8 }, (_, at) => ({ ...harmful, path: `body/field${at}` }));
    const { error } = await run({ deviations });
    assert.match(error?.message ?? '', /body\/field4 \(required\), and 3 more/);
  });

  test('never sends a request that cannot be checked in time', async () => {
    assert.equal((await run({ deviations: undefined })).code, 'OVERLOADED');
  });

  test('queues the request for the contracts of other environments', async () => {
    const guarded = environment({
      requests: 'enforce',
      judges: [judge('hash-1', '1.3.11'), judge('hash-2', '1.3.6', false)],
    });
    assert.deepEqual((await run({ guarded, deviations: [harmful] })).queued, [[harmful]]);
    assert.deepEqual((await run({ deviations: [harmful] })).queued, []);
  });

  test('refuses nothing where requests are only reported', async () => {
    const guarded = environment({ requests: 'report' });
    assert.equal((await run({ guarded, deviations: [harmful] })).code, 'sent');
  });
});

test('a request without a required header is refused in every mode of the contract', async () => {
  for (const requests of ['off', 'report', 'enforce'] as const) {
    const guarded = environment({ requests, missingHeader: () => 'TPP-Redirect-URI' });
    const { code, error } = await run({ guarded, deviations: [] });
    assert.equal(code, 'HEADER_MALFORMED');
    assert.equal(error?.field, 'TPP-Redirect-URI');
  }
});
