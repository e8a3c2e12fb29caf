/** How the results of initiations are counted. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { estimateTenants, initiationOf, sumInitiations } from '../../../src/telemetry/initiations.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import { initiations } from '../../kit/alert-facts.ts';
import { failedRecord, requestRecord } from '../../kit/request-records.ts';

const refusal = (code: string): Pick<RequestRecord, 'events'> => ({
  events: [{ afterMs: 1, event: { what: 'bank-error', code } }],
});
const ofBank = (more: Partial<RequestRecord>) => requestRecord({ servedFrom: 'bank', ...more });

describe('an initiation', () => {
  for (const [name, record, result] of [
    ['that the bank accepts', ofBank({ status: 201 }), 'accepted'],
    [
      'that it refuses',
      ofBank({ status: 401, ...refusal('CERTIFICATE_REVOKED') }),
      '401 CERTIFICATE_REVOKED',
    ],
    ['that it refuses without a code', ofBank({ status: 403 }), '403'],
    ['that it rejects with 201', ofBank({ status: 201, ...refusal('RJCT') }), '201 RJCT'],
    [
      'of which it is unknown whether it was executed',
      ofBank({ status: 200, outcome: 'in-doubt' }),
      'failed',
    ],
    ['that it answers with 503', ofBank({ status: 503 }), 'failed'],
    ['that it answers with 429', ofBank({ status: 429, ...refusal('ACCESS_EXCEEDED') }), 'failed'],
    ['that it answers with 302', ofBank({ status: 302 }), 'failed'],
    ['without an answer', failedRecord('OUTCOME_UNKNOWN', 504), 'failed'],
    ['for which the circuit is open', failedRecord('CIRCUIT_OPEN', 503), 'blocked'],
    ['that the queue refuses to one tenant', failedRecord('QUEUE_FULL', 503, true), 'tenant-blocked'],
    ['that the TPP has sent with a fault', failedRecord('BODY_TOO_LARGE', 413), undefined],
    ['that the ledger answers', requestRecord({ status: 201, servedFrom: 'ledger' }), undefined],
  ] as const)
    test(`${name} counts as ${result ?? 'nothing'}`, () => {
      assert.equal(initiationOf(record)?.result, result);
    });

  test('is not a read', () => {
    const { request } = ofBank({ status: 200 });
    assert.ok(request);
    assert.equal(initiationOf(ofBank({ request: { ...request, operation: 'getPayment' } })), undefined);
  });
});

test('tenants with the same last letter have different numbers', () => {
  const numberOf = (tenantId: string) => {
    const { request } = ofBank({ status: 201 });
    return (
      request && initiationOf(ofBank({ status: 201, request: { ...request, tenantId } }))?.tenants[0]?.[0]
    );
  };
  assert.equal(new Set(['alpha', 'beta', 'gamma', 'delta'].map(numberOf)).size, 4);
});

test('more tenants than numbers are estimated', () => {
  assert.equal(Math.round(estimateTenants(2)), 2);
  assert.equal(Math.round(estimateTenants(20)), 32);
});

test('counts of one environment, product and result are added up', () => {
  const both = [initiations(2, 'accepted'), initiations(1, 'failed'), initiations(3, 'accepted')];
  assert.deepEqual(sumInitiations(both), [initiations(5, 'accepted'), initiations(1, 'failed')]);
});

test('the counts of each tenant are added up, also those of sums', () => {
  const one = sumInitiations([
    initiations(2, 'accepted', { tenants: [[30, 2]] }),
    initiations(3, 'accepted', {
      tenants: [
        [4, 1],
        [30, 2],
      ],
    }),
  ]);
  assert.deepEqual(sumInitiations([...one, ...one])[0]?.tenants, [
    [4, 2],
    [30, 8],
  ]);
});

test('beyond 50 different results, further codes are counted together, and nothing is lost', () => {
  const all = Array.from({ length: 60 }, (_, index) => initiations(1, `400 CODE_${index}`));
  const sums = sumInitiations([...all, ...all]);
  assert.equal(sums.length, 51);
  assert.deepEqual(sums.at(-1), initiations(20, '400 other'));
  assert.equal(
    sums.reduce((sum, { count }) => sum + count, 0),
    120,
  );
});

test('beyond 100 different results, further products are counted together, and no tenant is lost', () => {
  const all = Array.from({ length: 300 }, (_, index) =>
    initiations(1, '404 PRODUCT_UNKNOWN', {
      product: `payments/p${index}`,
      tenants: [[index % 3, 1]],
    }),
  );
  const sums = sumInitiations(all);
  assert.ok(sums.length <= 101, `${sums.length} results`);
  const last = sums.at(-1);
  assert.deepEqual([last?.count, last?.product, last?.result], [200, 'other', '404 other']);
  const countOf = (tenant: number) =>
    sums
      .flatMap(({ tenants }) => tenants)
      .reduce((sum, [number, count]) => (number === tenant ? sum + count : sum), 0);
  assert.deepEqual([0, 1, 2].map(countOf), [100, 100, 100]);
});
