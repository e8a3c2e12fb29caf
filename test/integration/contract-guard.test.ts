/** The contract guard checks messages against the standard: `report` after a request was sent, `enforce` before anything is sent. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { createMemoryState } from '../../src/state/memory.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call, type Reply } from '../kit/call.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const reportShape = z.object({
  environments: z.array(
    z.object({
      name: z.string(),
      requests: z.object({ checked: z.number(), skipped: z.array(z.unknown()) }),
      responses: z.object({ checked: z.number() }),
    }),
  ),
  deviations: z.array(
    z.object({
      environment: z.string(),
      operation: z.string(),
      direction: z.string(),
      path: z.string(),
      rule: z.string(),
      level: z.string(),
      count: z.number(),
      xRequestId: z.string(),
      clients: z.array(z.object({ client: z.string(), count: z.number() })),
      changedAt: z.string().nullable(),
    }),
  ),
});
type Report = z.output<typeof reportShape>;

const recordsShape = z.array(
  z.object({ steps: z.array(z.record(z.string(), z.union([z.string(), z.number()]))) }),
);

async function reportOf(gateway: GatewayUnderTest): Promise<Report> {
  const reply = await callAdminApi(gateway, 'GET', '/api/contract');
  assert.equal(reply.status, 200, reply.text);
  return reportShape.parse(JSON.parse(reply.text));
}

/** The report, when it has what the test waits for. */
async function reportWith(
  gateway: GatewayUnderTest,
  condition: (report: Report) => boolean,
): Promise<Report> {
  let report = await reportOf(gateway);
  await until(
    5_000,
    () => `another report than ${JSON.stringify(report)}`,
    async () => {
      report = await reportOf(gateway);
      return condition(report);
    },
  );
  return report;
}

const checkedRequests = ({ environments }: Report) => environments[0]?.requests.checked ?? 0;
const errorOf = (reply: Reply) => reply.header('Penstock-Error');
const body: Readonly<Record<string, unknown>> = JSON.parse(initiation.body);

const payment = (requestId: string, changes: object = {}): Call => ({
  ...initiation,
  headers: [['X-Request-ID', requestId], ...initiation.headers],
  body: JSON.stringify({ ...body, ...changes }),
});
/** Violates the standard: the bank would refuse it. */
const withoutAmount = (requestId: string) => payment(requestId, { instructedAmount: undefined });

const sectionsFor = (baseUrl: string, contract: object, more: object = {}) => ({
  environments: { sandbox: { baseUrl, standardVersion: '1.3.11', contract, ...more } },
});

describe('a request that violates the standard', () => {
  test('is sent and reported, and after a reload to enforce it is still replayed', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { requests: 'report' }));
    const id = randomUUID();
    const first = await call(gateway.url, withoutAmount(id));
    const reached = bank.requests.length;
    assert.equal(reached, 1, first.text);

    await gateway.reload(sectionsFor(bank.baseUrl, { requests: 'enforce' }));
    const repeat = await call(gateway.url, withoutAmount(id));
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
    assert.deepEqual([repeat.status, repeat.text], [first.status, first.text]);
    assert.equal(bank.requests.length, reached);

    const { deviations } = await reportWith(gateway, (report) => checkedRequests(report) >= 1);
    const found = deviations.find(({ path }) => path === 'body/instructedAmount');
    assert.deepEqual(found?.clients, [{ client: 'anonymous', count: 1 }]);
    assert.equal(found?.xRequestId, id);
    assert.equal(found?.level, 'harmful');

    // The example in the report leads to the record, which shows the deviation and the field.
    const records = await callAdminApi(gateway, 'GET', `/api/decisions/${id}`);
    const { steps } = recordsShape.parse(JSON.parse(records.text)).at(-1) ?? assert.fail();
    const deviation = steps.find(
      ({ what, path }) => what === 'deviation' && path === 'body/instructedAmount',
    );
    const { of, rule, level } = deviation ?? assert.fail(records.text);
    assert.deepEqual([of, rule, level], ['request', 'required', 'harmful']);
  });

  test('is refused before anything is sent, and its X-Request-ID can be used for the corrected payment', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { requests: 'enforce' }));
    const id = randomUUID();
    const refused = await call(gateway.url, withoutAmount(id));
    assert.equal(refused.status, 400, refused.text);
    assert.equal(errorOf(refused), 'CONTRACT_VIOLATED');
    assert.match(refused.text, /FORMAT_ERROR/);
    assert.match(refused.text, /body\/instructedAmount \(required\)/);
    assert.equal(bank.requests.length, 0);

    const corrected = await call(gateway.url, payment(id));
    assert.equal(corrected.status, 201, corrected.text);
    assert.equal(corrected.header('Idempotent-Replayed'), undefined);
    assert.equal(bank.payments.length, 1);
    const repeat = await call(gateway.url, payment(id));
    assert.equal(repeat.header('Idempotent-Replayed'), 'true');
  });

  test('is refused with the path of the schema, never with a name or a value of its body', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { requests: 'enforce' }));
    const canary = `canary${randomUUID().replaceAll('-', '')}`;
    const reply = await call(
      gateway.url,
      payment(randomUUID(), {
        instructedAmount: undefined,
        creditorName: canary,
        [canary]: { [canary]: canary },
      }),
    );
    assert.equal(errorOf(reply), 'CONTRACT_VIOLATED');
    const report = await callAdminApi(gateway, 'GET', '/api/contract');
    const metrics = await callAdminApi(gateway, 'GET', '/metrics');
    const texts = [reply.text, report.text, metrics.text, ...gateway.logLines];
    assert.ok(report.text.includes('body/instructedAmount'));
    assert.ok(texts.every((text) => !text.toLowerCase().includes(canary)));
  });

  test('of 100 KiB is checked in the worker thread, in both modes', async (t) => {
    const bank = await startBank(t);
    const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { requests: 'report' }));
    const large = (id: string) => payment(id, { instructedAmount: undefined, padding: 'x'.repeat(100_000) });
    await call(gateway.url, large(randomUUID()));
    await reportWith(gateway, ({ deviations }) =>
      deviations.some(({ path }) => path === 'body/instructedAmount'),
    );

    await gateway.reload(sectionsFor(bank.baseUrl, { requests: 'enforce' }));
    const before = bank.requests.length;
    const refused = await call(gateway.url, large(randomUUID()));
    assert.ok(['CONTRACT_VIOLATED', 'OVERLOADED'].includes(errorOf(refused) ?? ''), refused.text); // a busy machine
    assert.equal(bank.requests.length, before);
  });
});

test('a header that the bank requires is demanded from new requests only', async (t) => {
  const bank = await startBank(t);
  const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { requests: 'off' }));
  const id = randomUUID();
  const without: Call = {
    ...payment(id),
    headers: (payment(id).headers ?? []).filter(([name]) => name.toLowerCase() !== 'tpp-redirect-uri'),
  };
  assert.equal((await call(gateway.url, without)).status, 201);

  const requireHeaders = { initiatePayment: ['TPP-Redirect-URI'] };
  await gateway.reload(sectionsFor(bank.baseUrl, { requests: 'off', requireHeaders }));
  assert.equal((await call(gateway.url, without)).header('Idempotent-Replayed'), 'true');
  const refused = await call(gateway.url, {
    ...without,
    headers: [['X-Request-ID', randomUUID()], ...(without.headers ?? []).slice(1)],
  });
  assert.equal(refused.status, 400);
  assert.equal(errorOf(refused), 'HEADER_MALFORMED');
  assert.match(refused.text, /TPP-Redirect-URI/);
  assert.equal(bank.payments.length, 1);
});

test('instances that share a state report together', async (t) => {
  const bank = await startBank(t);
  const state = createMemoryState();
  const sections = sectionsFor(bank.baseUrl, { requests: 'report' });
  const gateways = [await startGateway(t, sections, state), await startGateway(t, sections, state)];
  for (const gateway of gateways) await call(gateway.url, withoutAmount(randomUUID()));
  for (const gateway of gateways) {
    const { deviations } = await reportWith(gateway, (report) => checkedRequests(report) === 2);
    assert.equal(deviations.find(({ path }) => path === 'body/instructedAmount')?.count, 2);
  }
});

test('a bank that changes its answers raises an alert once, after answers without the change', async (t) => {
  const bank = await startBank(t);
  const contract = { sample: '100%' };
  const gateway = await startGateway(t, sectionsFor(bank.baseUrl, contract));
  for (let count = 0; count < 10; count++) await call(gateway.url, payment(randomUUID()));
  const changesIn = ({ deviations }: Report) => deviations.filter(({ changedAt }) => changedAt !== null);
  const usual = await reportWith(
    gateway,
    ({ environments }) => (environments[0]?.responses.checked ?? 0) >= 10,
  );
  assert.deepEqual(changesIn(usual), []);

  const changedAnswer = {
    status: 201,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({
      transactionStatus: 'DONE',
      paymentId: randomUUID(),
      _links: { self: { href: '/v1/x' } },
    }),
  };
  bank.injectFault({ name: 'status', ...changedAnswer }, { times: 2 });
  for (let count = 0; count < 2; count++) await call(gateway.url, payment(randomUUID()));
  const changed = await reportWith(gateway, (report) => changesIn(report).length > 0);
  assert.equal(changesIn(changed)[0]?.direction, 'response');
  await until(5_000, 'the warning', () =>
    gateway.logLines.some((line) => line.includes('the bank has changed')),
  );
  const timeline = await callAdminApi(gateway, 'GET', '/api/timeline');
  assert.match(timeline.text, /the bank has changed/);
  await until(20_000, 'the alert', async () =>
    (await callAdminApi(gateway, 'GET', '/api/alerts')).text.includes('its answers to initiatePayment have'),
  );
});

test('reads are checked, and answered by the cache without a check', async (t) => {
  const bank = await startBank(t);
  const gateway = await startGateway(t, sectionsFor(bank.baseUrl, { responses: 'off' }));
  const created = await call(gateway.url, payment(randomUUID()));
  const { paymentId } = z.object({ paymentId: z.string() }).parse(JSON.parse(created.text));
  const read = { method: 'GET', path: `${transfersPath}/${paymentId}/status` } as const;
  for (let count = 0; count < 3; count++) assert.equal((await call(gateway.url, read)).status, 200);
  const reads = bank.requests.length - 1;
  const report = await reportWith(gateway, (each) => checkedRequests(each) === 1 + reads);
  assert.equal(checkedRequests(report), 1 + reads);
});
