/** A bank that changes its answers raises one alert for each kind of change, over all instances. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { checkedIn, contractReportOf, type ShownReport, untilShown } from '../kit/contract-report.ts';
import { exampleOf } from '../kit/examples.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { parsePrometheus } from '../kit/prometheus.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const life = scopeOfAllTests();

const sectionsOf = ({ baseUrl }: SimulatedBank, contract: object) => ({
  environments: { sandbox: { baseUrl, standardVersion: '1.3.11', contract } },
  statusCache: { enabled: false },
});

type OperationCall =
  | 'initiatePayment'
  | 'getPayment'
  | 'getPaymentStatus'
  | 'startAuthorisation'
  | 'getAuthorisation';

/** Two instances with one Redis, in front of a bank that has given ten answers of each operation. */
const startPair = lazy(async () => {
  const bank = await startBank(life);
  const createState = redisStateFactory(await sharedRedisUrl(life));
  const sections = sectionsOf(bank, { sample: '100%' });
  const gateways = [
    await startGateway(life, sections, createState()),
    await startGateway(life, sections, createState()),
  ] as const;
  const calls = await callsOf(gateways[0]);
  // From its first answer on, this bank lists the authorisations under another name.
  const listed = JSON.stringify({ cancellationIds: [] });
  bank.injectFault(
    { name: 'status', status: 200, headers: json, body: listed },
    { operation: 'listAuthorisations' },
  );
  const all = [...Object.values(calls), listAuthorisations(calls.getPayment)];
  for (let count = 0; count < 5; count++)
    for (const gateway of gateways) for (const one of all) await call(gateway.url, one);
  for (const gateway of gateways) {
    const isChecked = (report: ShownReport) => checkedIn(report, 'responses') >= 10 * all.length;
    await untilShown(() => contractReportOf(gateway), isChecked);
  }
  return { bank, gateways, calls };
});

/** A call of each operation, for one payment. */
async function callsOf(gateway: GatewayUnderTest): Promise<Readonly<Record<OperationCall, Call>>> {
  const path = `${transfersPath}/${jsonOf(await call(gateway.url, initiation)).paymentId}`;
  const startAuthorisation = { ...exampleOf('start-authorisation'), path: `${path}/authorisations` };
  const withoutId = startAuthorisation.headers.filter(([name]) => name !== 'X-Request-ID');
  const started = await call(gateway.url, { ...startAuthorisation, headers: withoutId });
  return {
    initiatePayment: initiation,
    getPayment: { method: 'GET', path },
    getPaymentStatus: { method: 'GET', path: `${path}/status` },
    startAuthorisation: { ...startAuthorisation, headers: withoutId },
    getAuthorisation: { method: 'GET', path: `${path}/authorisations/${jsonOf(started).authorisationId}` },
  };
}

const listAuthorisations = ({ path }: Call): Call => ({ method: 'GET', path: `${path}/authorisations` });

const json = { 'Content-Type': 'application/json' };
const links = { self: { href: '/berlingroup/v1/payments/1' } };
const initiated = { transactionStatus: 'RCVD', paymentId: '1', _links: links };

interface ChangedAnswer {
  readonly operation: OperationCall;
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Path and rule of the deviation. */
  readonly expected: string;
}

const changedAnswers: Readonly<Record<string, ChangedAnswer>> = {
  'an unknown status of a payment': {
    operation: 'getPaymentStatus',
    status: 200,
    body: { transactionStatus: 'DONE' },
    expected: 'body/transactionStatus enum',
  },
  'no status of a payment': {
    operation: 'getPaymentStatus',
    status: 200,
    body: { fundsAvailable: true },
    expected: 'body/transactionStatus required',
  },
  'no id of the payment': {
    operation: 'initiatePayment',
    status: 201,
    body: { ...initiated, paymentId: undefined },
    expected: 'body/paymentId required',
  },
  'a number as the id of the payment': {
    operation: 'initiatePayment',
    status: 201,
    body: { ...initiated, paymentId: 1 },
    expected: 'body/paymentId type',
  },
  'no links': {
    operation: 'initiatePayment',
    status: 201,
    body: { ...initiated, _links: undefined },
    expected: 'body/_links required',
  },
  'links with other names': {
    operation: 'initiatePayment',
    status: 201,
    body: { ...initiated, _links: { selfLink: links.self } },
    expected: 'body/_links/* unknown',
  },
  'another status code': {
    operation: 'initiatePayment',
    status: 200,
    body: initiated,
    expected: 'status/2xx status',
  },
  'another content type': {
    operation: 'startAuthorisation',
    status: 201,
    headers: { 'Content-Type': 'text/plain' },
    body: {},
    expected: 'headers/Content-Type content-type',
  },
  'an unknown status of an authorisation': {
    operation: 'getAuthorisation',
    status: 200,
    body: { scaStatus: 'done' },
    expected: 'body/scaStatus enum',
  },
  'a number as an amount': {
    operation: 'getPayment',
    status: 200,
    body: { ...jsonOf({ text: initiation.body }), instructedAmount: { currency: 'EUR', amount: 123.5 } },
    expected: 'body/instructedAmount/amount type',
  },
};

const alertsIn = ({ deviations }: ShownReport) => deviations.filter(({ changedAt }) => changedAt !== null);
const nameOf = ({ path, rule }: { readonly path: string; readonly rule: string }) => `${path} ${rule}`;

/** Sends a call to each instance, to which the bank answers so. */
async function answerBoth(
  { bank, gateways, calls }: Awaited<ReturnType<typeof startPair>>,
  { operation, status, body, headers = json }: Omit<ChangedAnswer, 'expected'>,
): Promise<void> {
  bank.injectFault({ name: 'status', status, headers, body: JSON.stringify(body) }, { times: 2, operation });
  for (const gateway of gateways) await call(gateway.url, { ...calls[operation], requestId: randomUUID() });
}

/** The reports of both instances, when one of them meets the condition. */
const untilReported = (gateways: readonly GatewayUnderTest[], condition: (report: ShownReport) => boolean) =>
  untilShown(async () => {
    const [report = assert.fail()] = await Promise.all(gateways.map((gateway) => contractReportOf(gateway)));
    return report;
  }, condition);

async function alertMetric(gateways: readonly GatewayUnderTest[]): Promise<number> {
  let sum = 0;
  for (const gateway of gateways) {
    const families = parsePrometheus((await callAdminApi(gateway, 'GET', '/metrics')).text);
    for (const { value } of families.get('penstock_contract_changes_total')?.samples ?? []) sum += value;
  }
  return sum;
}

const warningsOf = (gateways: readonly GatewayUnderTest[]) =>
  gateways.flatMap(({ logLines }) => logLines.filter((line) => line.includes('the bank has changed')));

describe('a bank whose answers have been checked', { skip: skipWithoutRedis }, () => {
  test('raises no alert with deviations that it has had from the beginning, or that every bank has', async () => {
    const pair = await startPair();
    const { gateways, calls } = pair;
    const before = checkedIn(await untilReported(gateways, () => true), 'responses');
    await answerBoth(pair, { operation: 'initiatePayment', status: 201, body: { ...initiated, more: 1 } });
    await answerBoth(pair, {
      operation: 'getPayment',
      status: 500,
      headers: { 'Content-Type': 'text/html' },
      body: {},
    });
    for (const gateway of gateways) await call(gateway.url, listAuthorisations(calls.getPayment));
    const report = await untilReported(gateways, (each) => checkedIn(each, 'responses') >= before + 6);
    const found = report.deviations.filter(({ direction }) => direction === 'response').map(nameOf);
    assert.deepEqual(found.toSorted(), [
      'body/* unknown',
      'body/authorisationIds required',
      'body/cancellationIds not-in-version',
      'error content-type',
    ]);
    assert.deepEqual(alertsIn(report), []);
    assert.equal(await alertMetric(gateways), 0);
    assert.deepEqual(warningsOf(gateways), []);
  });

  for (const [name, changed] of Object.entries(changedAnswers)) {
    test(`raises one alert, although two instances see it: ${name}`, async () => {
      const pair = await startPair();
      const { gateways } = pair;
      const before = { metric: await alertMetric(gateways), warnings: warningsOf(gateways).length };
      await answerBoth(pair, changed);
      const { operation, expected } = changed;
      const isThis = (row: ShownReport['deviations'][number]) =>
        row.operation === operation && row.direction === 'response' && nameOf(row) === expected;
      const isCounted = ({ deviations }: ShownReport) => deviations.find(isThis)?.count === 2;
      await untilReported(gateways, isCounted);
      await answerBoth(pair, changed); // known now
      const report = await untilReported(gateways, ({ deviations }) => deviations.find(isThis)?.count === 4);

      const [alert] = alertsIn(report).filter(isThis);
      assert.ok(alert?.changedAt, JSON.stringify(report.deviations));
      assert.equal(await alertMetric(gateways), before.metric + 1);
      const warnings = warningsOf(gateways);
      assert.equal(warnings.length, before.warnings + 1, warnings.join('\n'));
      assert.ok(warnings.some((line) => line.includes(alert.path) && line.includes(`(${alert.rule})`)));
      const text = `the bank has changed: answers to ${operation} have a new deviation from the standard: ${alert.path} (${alert.rule})`;
      await until(5_000, 'the entry of the timeline', async () => {
        const timeline = await callAdminApi(gateways[0], 'GET', '/api/timeline');
        return timeline.text.split(text).length === 2;
      });
    });
  }
});

test('the first answer of each operation is checked, however small the sample is', async (t) => {
  const bank = await startBank(t);
  const gateway = await startGateway(t, sectionsOf(bank, { sample: '1%' }));
  const calls = await callsOf(gateway);
  for (const one of [calls.getPayment, calls.getPaymentStatus, calls.getAuthorisation])
    await call(gateway.url, one);
  const isChecked = (report: ShownReport) => checkedIn(report, 'responses') >= 5;
  const { environments } = await untilShown(() => contractReportOf(gateway), isChecked);
  assert.ok(environments[0]);

  for (let count = 0; count < 50; count++) await call(gateway.url, calls.getPayment);
  const [environment] = (await contractReportOf(gateway)).environments;
  assert.deepEqual(
    environment?.responses.skipped.map(({ reason }) => reason),
    ['sampled-out'],
  );
});
