/** What an instance counts in memory until it is written to the report. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDeviationCounts } from '../../../src/contract-guard/deviation-counts.ts';

test('deviations beyond the limit are counted together, as not counted', () => {
  const counts = createDeviationCounts();
  const scope = { environment: 'sandbox', hash: 'hash-1', isOwn: true, direction: 'request' } as const;
  const message = { operation: 'initiatePayment', requestId: 'request-1', atMs: 1 } as const;
  for (let client = 0; client < 5_003; client++)
    counts.add(scope, { ...message, client: `client-${client}` }, [
      { level: 'harmful', rule: 'required', path: 'body/creditorName', effect: 'refused' },
    ]);
  const taken = counts.take() ?? assert.fail();
  assert.equal(taken.deviations.length, 5_000);
  assert.deepEqual(
    taken.skipped.map(({ reason, count }) => [reason, count]),
    [['not-counted', 3]],
  );
  assert.equal(counts.take(), undefined);
});
