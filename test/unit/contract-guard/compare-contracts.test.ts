import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compareContracts } from '../../../src/contract-guard/compare-contracts.ts';
import type { ContractReport, ReportedDeviation } from '../../../src/contract-guard/read-report.ts';
import { environment, judge } from './messages.ts';

const production = environment({
  name: 'production',
  own: judge('hash-2', '1.3.6'),
});
const both = { all: [environment(), production] };

const deviation = (changes: Partial<ReportedDeviation> = {}): ReportedDeviation => ({
  environment: 'sandbox',
  hash: 'hash-2',
  isOwn: false,
  direction: 'request',
  operation: 'initiatePayment',
  path: 'body/monthsOfExecution',
  rule: 'not-in-version',
  level: 'harmful',
  effect: 'executed-differently',
  count: 3,
  clients: [{ client: 'shop-1', count: 3 }],
  firstMs: 20,
  lastMs: 30,
  requestId: 'request-1',
  ...changes,
});
const judged = {
  environment: 'sandbox',
  hash: 'hash-2',
  isOwn: false,
  direction: 'request',
  count: 10,
  firstMs: 10,
  clients: [],
} as const;
const report = (changes: Partial<ContractReport> = {}): ContractReport => ({
  fromMs: 10,
  deviations: [deviation()],
  messages: [judged],
  skipped: [],
  ...changes,
});

const compare = (changes: Partial<ContractReport> = {}) =>
  compareContracts(report(changes), both, 'sandbox', 'production') ??
  assert.fail('an environment is missing');

describe('the comparison of two environments', () => {
  test('lists the deviations of requests in one environment from the contract of the other', () => {
    const { requests, isComplete, differences } = compare();
    assert.deepEqual([requests, isComplete], [10, true]);
    assert.deepEqual(
      differences.map(({ path, isInBoth, mustAcknowledge }) => [path, isInBoth, mustAcknowledge]),
      [['body/monthsOfExecution', false, true]],
    );
  });

  test('requires acknowledgement of harmful differences only, and omits usual deviations', () => {
    const { differences } = compare({
      deviations: [
        deviation(),
        deviation({ path: 'body/chargeBearer', level: 'notable', effect: 'ignored' }),
        deviation({ path: 'headers/PSU-IP-Address', level: 'usual', effect: 'none' }),
        deviation({ direction: 'response', path: 'body/scaStatus' }),
        deviation({ hash: 'hash-9' }),
      ],
    });
    assert.deepEqual(
      differences.map(({ path, mustAcknowledge }) => [path, mustAcknowledge]),
      [
        ['body/monthsOfExecution', true],
        ['body/chargeBearer', false],
      ],
    );
  });

  const refused = { path: 'body/creditorName', rule: 'required', effect: 'refused' } as const;
  const marksOf = (...deviations: readonly ReportedDeviation[]) =>
    compare({ deviations }).differences.map(({ count, isInBoth, mustAcknowledge }) => ({
      count,
      isInBoth,
      mustAcknowledge,
    }));

  test('marks requests that both environments refuse, and requires no acknowledgement of them', () => {
    assert.deepEqual(marksOf(deviation({ ...refused, alsoRefusedBy: 'hash-1' })), [
      { count: 3, isInBoth: true, mustAcknowledge: false },
    ]);
  });

  test('requires acknowledgement of requests that only the other environment refuses, and lists them first', () => {
    const inBoth = deviation({ ...refused, count: 7, alsoRefusedBy: 'hash-1' });
    assert.deepEqual(marksOf(inBoth, deviation(refused)), [
      { count: 3, isInBoth: false, mustAcknowledge: true },
      { count: 7, isInBoth: true, mustAcknowledge: false },
    ]);
  });

  test('does not assume that the same rule in both contracts is about the same requests', () => {
    const own = deviation({ ...refused, hash: 'hash-1', isOwn: true, count: 9 });
    assert.deepEqual(marksOf(deviation(refused), own), [
      { count: 3, isInBoth: false, mustAcknowledge: true },
    ]);
  });

  test('requires acknowledgement if the contract of the first environment has changed since both refused the requests', () => {
    assert.deepEqual(marksOf(deviation({ ...refused, alsoRefusedBy: 'hash-0' }), deviation(refused)), [
      { count: 6, isInBoth: false, mustAcknowledge: true },
    ]);
  });

  test('requires acknowledgement of requests that could not be judged, even if neither environment could', () => {
    const unjudged = { ...refused, effect: 'not-judged', alsoRefusedBy: 'hash-1' } as const;
    assert.deepEqual(marksOf(deviation(unjudged)), [{ count: 3, isInBoth: true, mustAcknowledge: true }]);
  });

  test('marks fields that both environments ignore', () => {
    const notable = { path: 'body/*', rule: 'unknown', level: 'notable', effect: 'ignored' } as const;
    const own = deviation({ ...notable, hash: 'hash-1', isOwn: true });
    assert.deepEqual(marksOf(deviation(notable), own), [
      { count: 3, isInBoth: true, mustAcknowledge: false },
    ]);
    assert.deepEqual(marksOf(deviation(notable)), [{ count: 3, isInBoth: false, mustAcknowledge: false }]);
  });

  test('never reads as compatible where requests were not judged', () => {
    assert.equal(compare({ messages: [] }).isComplete, false);
    assert.equal(compare({ messages: [] }).judgedSinceMs, undefined);
    assert.equal(compare({ messages: [{ ...judged, firstMs: 11 }] }).isComplete, false);
    const skipped = [{ environment: 'sandbox', direction: 'request', reason: 'shed', count: 1 }] as const;
    assert.equal(compare({ skipped }).isComplete, false);
  });

  test('uses the only check of a request if both environments have the same contract', () => {
    const same = { all: [environment(), environment({ name: 'staging' })] };
    const messages = [{ ...judged, hash: 'hash-1', isOwn: true }];
    const deviations = [deviation({ hash: 'hash-1', isOwn: true })];
    const comparison = compareContracts(report({ messages, deviations }), same, 'sandbox', 'staging');
    assert.equal(comparison?.requests, 10);
    assert.equal(comparison?.differences[0]?.isInBoth, true);
    assert.equal(comparison?.differences[0]?.mustAcknowledge, false);
    assert.equal(compareContracts(report(), same, 'sandbox', 'nowhere'), undefined);
  });
});
