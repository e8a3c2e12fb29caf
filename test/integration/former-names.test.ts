/**
 * A gateway in a Redis Cluster beside a release before the epochs, which this test plays: that release stores each entry
 * only as `ledger:entry:<id>`, claims it if there is none, and compares the stored text before each further step.
 */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { KeyValues, State } from '../../src/state/ports.ts';
import { createRedisState } from '../../src/state/redis.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { initiationCounts } from '../kit/payment-fleet.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { startRedisCluster } from '../kit/redis-cluster.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

/** The base64url SHA-256 of a list in JSON, a zero byte and a body, as all releases compute ids and fingerprints. */
const hashOf = (parts: readonly unknown[], body: string | Buffer = '') =>
  createHash('sha256')
    .update(`${JSON.stringify(parts)}\0`)
    .update(body)
    .digest('base64url');

const idOf = (requestId: string) => hashOf(['anonymous', 'initiatePayment', null, requestId]);

const formerKeyOf = (requestId: string) => `ledger:entry:${idOf(requestId)}`;

const contentType = initiation.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1];

const claimed = (requestId: string, holder: string) => ({
  v: 1,
  step: 'claimed',
  fingerprint: hashOf(['POST', initiation.path, contentType, null], initiation.body),
  attempt: randomUUID(),
  holder,
  requestId,
  since: Date.now(),
  operation: 'initiatePayment',
  path: initiation.path,
  paymentService: 'payments',
  tenant: 'anonymous',
});

const sending = (requestId: string, holder: string) => ({
  ...claimed(requestId, holder),
  step: 'sending',
  environment: 'sandbox',
  listenedUntil: Date.now(),
});

const answered = (requestId: string, holder: string) => ({
  ...sending(requestId, holder),
  step: 'answered',
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: Buffer.from('{"paymentId":"of-the-former-release"}').toString('base64'),
});

describe('a gateway in a Redis Cluster, beside a release that knows only the former names of entries', {
  skip: skipWithoutRedisServer,
}, () => {
  const life = scopeOfAllTests();
  const cluster = lazy(() => startRedisCluster(life));

  async function start(t: TestContext) {
    const { urls } = await cluster();
    const prefix = `test-${randomUUID()}:`;
    const state: State = createRedisState({ kind: 'cluster', urls: [...urls] }, prefix, () => {}, 2_000);
    await state.open();
    t.after(() => state.close());
    const { keyValues, sets } = state;
    const former = randomUUID();
    const leaseKey = `ledger:holder:${former}`;
    await sets.add('ledger:holders', former);
    await keyValues.write(leaseKey, ''); // longer than the test takes
    const bank = await startBank(t);
    const startInstance = () =>
      startGateway(t, {
        environments: { sandbox: { baseUrl: bank.baseUrl } },
        idempotency: { wait: '50ms' },
        state: { redis: { cluster: urls }, prefix },
      });
    return {
      bank,
      gateway: await startInstance(),
      startInstance,
      keyValues,
      sets,
      /** Id of the instance of the former release. */
      former,
      endFormer: () => keyValues.remove(leaseKey),
    };
  }

  const store = ({ write }: KeyValues, entry: { readonly requestId: string }) =>
    write(formerKeyOf(entry.requestId), JSON.stringify(entry));

  const readFormer = async ({ read }: KeyValues, requestId: string) =>
    JSON.parse((await read(formerKeyOf(requestId))) ?? 'null');

  const pay = (gateway: GatewayUnderTest, requestId: string) =>
    call(gateway.url, { ...initiation, requestId });

  const payOutcome = async (gateway: GatewayUnderTest, requestId: string) =>
    outcomeOf(await pay(gateway, requestId));

  const listInDoubt = async (gateway: GatewayUnderTest) =>
    JSON.parse((await callAdminApi(gateway, 'GET', '/api/in-doubt')).text) as readonly {
      readonly id: string;
      readonly xRequestId: string;
    }[]; // as in the OpenAPI description

  test('replays a response that the other release received', async (t) => {
    const { bank, gateway, keyValues, former } = await start(t);
    const requestId = randomUUID();
    await store(keyValues, answered(requestId, former));
    const repeat = await pay(gateway, requestId);
    assert.equal(outcomeOf(repeat), '201 replayed');
    assert.equal(jsonOf(repeat).paymentId, 'of-the-former-release');
    assert.deepEqual(bank.requests, []);
  });

  test('sends nothing while the other release executes the request, and then puts it in doubt', async (t) => {
    const { bank, gateway, keyValues, former, endFormer } = await start(t);
    const [unsent, sent] = [randomUUID(), randomUUID()];
    await store(keyValues, claimed(unsent, former));
    await store(keyValues, sending(sent, former));
    assert.equal(await payOutcome(gateway, unsent), '409 DUPLICATE_IN_FLIGHT');
    assert.equal(await payOutcome(gateway, sent), '409 DUPLICATE_IN_FLIGHT');
    assert.deepEqual(bank.requests, []);

    await endFormer();
    assert.equal(await payOutcome(gateway, sent), '409 DUPLICATE_IN_DOUBT');
    assert.equal((await readFormer(keyValues, sent)).step, 'in-doubt');
    const [listed] = await listInDoubt(gateway);
    assert.equal(listed?.xRequestId, sent);
    const resolution = { outcome: 'did-not-happen', reason: 'a test' };
    const resolved = await callAdminApi(gateway, 'POST', `/api/in-doubt/${listed?.id}`, resolution);
    assert.equal(resolved.status, 200, resolved.text);
    assert.equal(await payOutcome(gateway, sent), '201');
    assert.deepEqual(await listInDoubt(gateway), []);

    assert.equal(await payOutcome(gateway, unsent), '201', 'nothing was sent: the claim is taken over');
    assert.equal(await payOutcome(gateway, unsent), '201 replayed');
    assert.deepEqual([...initiationCounts(bank).values()], [1, 1]);
  });

  test('lists what the other release left in doubt, and keeps it under the former name', async (t) => {
    const { bank, gateway, keyValues, sets, former } = await start(t);
    const requestId = randomUUID();
    const entry = { ...sending(requestId, former), step: 'in-doubt', why: 'the connection was reset' };
    const name = `${entry.attempt}.${idOf(requestId)}`;
    await store(keyValues, entry);
    await sets.add(`ledger:open:${name.charAt(0)}`, name);
    assert.deepEqual(
      (await listInDoubt(gateway)).map(({ id }) => id),
      [name],
    );
    assert.equal(await payOutcome(gateway, requestId), '409 DUPLICATE_IN_DOUBT');
    const body = { outcome: 'happened', reason: 'a test' };
    assert.equal((await callAdminApi(gateway, 'POST', `/api/in-doubt/${name}`, body)).status, 200);
    assert.equal((await readFormer(keyValues, requestId)).step, 'happened');
    assert.equal(await payOutcome(gateway, requestId), '409 DUPLICATE_IN_DOUBT');
    assert.deepEqual(bank.requests, []);
  });

  test('shows its own payments to the other release, at every step', async (t) => {
    const { bank, gateway, startInstance, keyValues } = await start(t);
    const requestId = randomUUID();
    bank.injectFault({ name: 'latency', ms: 600_000 }, { operation: 'initiatePayment' });
    const first = pay(gateway, requestId);
    await until(10_000, 'the payment is at the bank', () => initiationCounts(bank).has(requestId));
    const pending = await readFormer(keyValues, requestId);
    assert.equal(pending.step, 'sending');
    assert.equal(await keyValues.writeIfAbsent(formerKeyOf(requestId), 'claim of the other release'), false);
    bank.clearFaults();
    bank.endDelays();
    assert.equal(outcomeOf(await first), '201');
    const last = await readFormer(keyValues, requestId);
    assert.deepEqual([last.step, last.status, last.attempt], ['answered', 201, pending.attempt]);
    assert.equal(await payOutcome(await startInstance(), requestId), '201 replayed');

    const released = randomUUID();
    bank.injectFault({ name: 'too-many-requests' }, { operation: 'initiatePayment' });
    assert.match(await payOutcome(gateway, released), /^429/);
    await until(5_000, 'the other release can claim the request', () =>
      keyValues.writeIfAbsent(formerKeyOf(released), JSON.stringify(claimed(released, randomUUID()))),
    );
  });

  test('shares every request with the other release so that exactly one of them claims it', async (t) => {
    const { bank, gateway, keyValues, former } = await start(t);
    const requestIds = Array.from({ length: 200 }, () => randomUUID());
    const wonByFormer = new Set<string>();
    const claimAsFormer = async (requestId: string) => {
      const entry = JSON.stringify(claimed(requestId, former));
      if (await keyValues.writeIfAbsent(formerKeyOf(requestId), entry)) wonByFormer.add(requestId);
    };
    await Promise.all(
      requestIds.map(async (requestId, index) => {
        const payment = payOutcome(gateway, requestId);
        const isClaimed = async () => (await keyValues.read(formerKeyOf(requestId))) !== undefined;
        if (index % 2 === 1) await until(10_000, 'the gateway has claimed the request', isClaimed);
        await claimAsFormer(requestId);
        return payment;
      }),
    );
    const counts = initiationCounts(bank);
    for (const requestId of requestIds)
      assert.equal(counts.get(requestId) ?? 0, wonByFormer.has(requestId) ? 0 : 1);
    assert.ok(wonByFormer.size < requestIds.length, 'the gateway executes some of them');
  });
});
