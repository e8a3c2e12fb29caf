import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CommandError } from '../../../src/commands/command-error.ts';
import { compare, showReport } from '../../../src/commands/contract.ts';
import { useEnvironment } from '../../../src/commands/environment.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const checked = { mode: 'report', checked: 12, checkedSince: '2026-01-31T12:00:00.123Z', skipped: [] };
const environments = [
  {
    name: 'sandbox',
    standardVersion: '1.3.11',
    requests: { ...checked, mode: 'enforce' },
    responses: { ...checked, checked: 3, skipped: [{ reason: 'sampled-out', count: 27 }] },
  },
  {
    name: 'production',
    standardVersion: '1.3.6',
    requests: { ...checked, checked: 0, checkedSince: null },
    responses: { ...checked, mode: 'off', checked: 0, checkedSince: null },
  },
];
const evidence = {
  count: 3,
  clients: [{ client: 'shop', count: 3 }],
  lastSeen: '2026-01-31T12:00:00.123Z',
  xRequestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
};
const deviation = {
  environment: 'sandbox',
  operation: 'initiatePayment',
  direction: 'request',
  path: 'body/instructedAmount/amount',
  rule: 'pattern',
  level: 'harmful',
  effect: 'refused',
  current: true,
  changedAt: null,
  ...evidence,
};

describe('penstock contract report', () => {
  test('shows what was checked and what was not, and each deviation in at most 80 columns', async () => {
    const answer = { direction: 'response', operation: 'getPaymentStatus', effect: 'client-may-fail' };
    const changed = {
      ...deviation,
      ...answer,
      current: false,
      changedAt: '2026-01-31T11:00:00.000Z',
      count: 1,
    };
    const report = { environments, deviations: [deviation, changed], omitted: 5 };
    const { call, calls } = fakeAdminClient(200, report);
    const { lines, data, exitCode } = await showReport(call, { environment: 'sandbox', days: '7' });
    assert.deepEqual(lines, [
      'sandbox (1.3.11)',
      '  requests  enforce: 12 checked since 2026-01-31T12:00:00Z',
      '  answers   report: 3 checked since 2026-01-31T12:00:00Z',
      '            27 not checked (sampled-out)',
      'production (1.3.6)',
      '  requests  report: none checked',
      '  answers   off',
      '',
      'harmful  refused: initiatePayment in sandbox',
      '  body/instructedAmount/amount  pattern',
      '  3 times by shop (3)',
      '  last 2026-01-31T12:00:00Z  X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
      '',
      'harmful  client-may-fail: answer to getPaymentStatus in sandbox',
      '  body/instructedAmount/amount  pattern',
      '  of an earlier contract: counting has begun again since',
      '  the bank has changed, at 2026-01-31T11:00:00Z',
      '  1 time by shop (3)',
      '  last 2026-01-31T12:00:00Z  X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
      '',
      '5 more deviations are not listed: use --environment or --level.',
      'Show a message and its request: penstock explain X-REQUEST-ID',
    ]);
    assert.ok(lines.every((line) => line.length <= 80));
    assert.deepEqual([data, exitCode], [report, 0]);
    assert.deepEqual(calls, [['GET', '/contract?environment=sandbox&days=7']]);
  });

  test('says that it lists none, after what was checked', async () => {
    const { call } = fakeAdminClient(200, { environments, deviations: [], omitted: 0 });
    assert.equal((await showReport(call, {})).lines.at(-1), 'No deviation is listed.');
  });
});

const difference = {
  operation: 'initiatePayment',
  path: 'body/requestedExecutionDate',
  rule: 'not-in-version',
  level: 'harmful',
  effect: 'executed-at-once',
  inBoth: false,
  mustAcknowledge: true,
  ...evidence,
};
const comparison = {
  from: 'sandbox',
  to: 'production',
  requests: 40,
  since: '2026-01-25T00:00:00.000Z',
  judgedSince: '2026-01-31T12:00:00.123Z',
  skipped: [{ reason: 'shed', count: 2 }],
  complete: false,
  differences: [
    difference,
    { ...difference, level: 'notable', effect: 'ignored', inBoth: true, mustAcknowledge: false, count: 1 },
  ],
};
const between = ['sandbox', 'production'] as const;
const difference80 = [
  '! executed-at-once: initiatePayment',
  '  body/requestedExecutionDate  not-in-version',
  '  3 times by shop (3)',
  '  last 2026-01-31T12:00:00Z  X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
];

describe('penstock contract compare', () => {
  test('lists the differences, what is not known, and how to switch nevertheless', async () => {
    const { call, calls } = fakeAdminClient(200, comparison);
    const { lines, exitCode } = await compare(call, { between, days: '7' });
    assert.deepEqual(lines, [
      '40 requests in sandbox judged by the contract of production',
      '  not judged before 2026-01-31T12:00:00Z',
      '  2 not checked (shed)',
      ...difference80,
      '- ignored: initiatePayment (also in sandbox)',
      '  body/requestedExecutionDate  not-in-version',
      '  1 time by shop (3)',
      '  last 2026-01-31T12:00:00Z  X-Request-ID 99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
      'A switch to production must acknowledge those with !: --acknowledge-differences',
    ]);
    assert.ok(lines.every((line) => line.length <= 80));
    assert.equal(exitCode, 0);
    assert.deepEqual(calls, [['GET', '/contract/compare?from=sandbox&to=production&days=7']]);
  });

  test('exits with 1 if it is strict, and a switch must acknowledge something or nothing is known', async () => {
    const ignored = comparison.differences.slice(1);
    const unknown = { ...comparison, requests: 0, judgedSince: null, differences: [] };
    for (const [body, expected] of [
      [comparison, 1],
      [{ ...comparison, differences: ignored }, 0],
      [unknown, 1],
    ] as const) {
      const { call } = fakeAdminClient(200, body);
      assert.equal((await compare(call, { between, strict: true })).exitCode, expected);
      assert.equal((await compare(call, { between })).exitCode, 0);
    }
    const { call } = fakeAdminClient(200, unknown);
    assert.deepEqual((await compare(call, { between })).lines, [
      'No request in sandbox was judged by the contract of production: nothing is known.',
    ]);
  });
});

test('penstock environment use prints the differences of a refused switch, and how to acknowledge them', async () => {
  const preflight = { ok: true, steps: [] };
  const { call } = fakeAdminClient(409, { error: 'Not switched: …', preflight, contract: comparison });
  const options = { environment: 'production', reason: 'go-live' };
  await assert.rejects(useEnvironment(call, options), (error) => {
    assert.ok(error instanceof CommandError);
    assert.deepEqual(error.lines.slice(3, 7), difference80);
    assert.match(error.lines.at(-1) ?? '', /--acknowledge-differences$/);
    return error.exitCode === 1;
  });
  const done = fakeAdminClient(200, { preflight, contract: comparison });
  const { lines } = await useEnvironment(done.call, { ...options, acknowledgeDifferences: true });
  assert.equal(lines.at(-1), 'New payments go to production now.');
  assert.ok(!lines.some((line) => line.includes('--acknowledge-differences')));
});
