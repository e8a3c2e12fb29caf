/**
 * Two instances reload another configuration, one after the other, while payments, repeats, reads and cancellations arrive.
 *
 * No request may reach a bank that did not create its payment, no tenant may see a payment of another one, and nothing may
 * be paid twice, whether the change is valid or refused.
 */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply, repeatWhile } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

/** A caller of the gateway: its API key, or `undefined` if no clients are configured. */
type Caller = 'shop' | 'rival' | undefined;

interface Payment {
  readonly caller: Caller;
  readonly requestId: string;
  readonly paymentId: string;
  readonly text: string;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const client = (caller: string, tenant = caller) => ({ name: caller, tenant, apiKeySha256: sha256(caller) });
const headerOf = (caller: Caller) => (caller === undefined ? [] : ([['X-API-Key', caller]] as const));

const pay = ({ url }: GatewayUnderTest, caller: Caller, requestId: string) =>
  call(url, { ...initiation, requestId, headers: [...initiation.headers, ...headerOf(caller)] });

const ask = ({ url }: GatewayUnderTest, caller: Caller, method: 'GET' | 'DELETE', { paymentId }: Payment) =>
  call(url, { method, path: `${transfersPath}/${paymentId}`, headers: headerOf(caller) });

interface Change {
  readonly banks: readonly SimulatedBank[];
  readonly callers: readonly Caller[];
  readonly before: Sections;
  readonly after: Sections;
  /** What an operator says before the reload: the path of the admin API, and the new name or address. */
  readonly said?: readonly [path: string, to: string];
  /** The environment that is active from then on. */
  readonly activated?: string;
  /** The error that refuses the change; missing if the gateway accepts it. */
  readonly refusal?: RegExp;
}

/** How many payments are made before, between and after the reloads. */
const paymentsPerPhase = 15;
const workers = 6;

/** Reloads one instance and then the other under load, and checks that nothing was violated. @returns both, and all payments */
async function reloadUnderLoad(t: TestContext, change: Change) {
  const { banks, callers, before, after, said, activated, refusal } = change;
  const newState = redisStateFactory(await redis());
  const instances = [
    await startGateway(t, before, newState()),
    await startGateway(t, before, newState()),
  ] as const;
  const payments: Payment[] = [];
  const violations: string[] = [];
  let isOver = false;
  let turn = 0;

  /** One payment, its repeat to the other instance, and reads and cancellations by everybody. */
  async function work(): Promise<void> {
    while (!isOver) {
      turn++;
      const [one, other] = turn % 2 === 0 ? instances : instances.toReversed();
      const caller = callers[turn % callers.length];
      if (!one || !other) return;
      const requestId = randomUUID();
      const [first, repeat] = await Promise.all([pay(one, caller, requestId), pay(other, caller, requestId)]);
      const created = [first, repeat].find(({ status }) => status === 201);
      if (!created) continue;
      payments.push({ caller, requestId, paymentId: String(jsonOf(created).paymentId), text: created.text });
      const payment = payments[(turn * 7) % payments.length];
      const stranger = callers[(turn + 1) % callers.length];
      if (!payment) continue;
      await pay(other, payment.caller, payment.requestId);
      await ask(one, payment.caller, 'GET', payment);
      if (turn % 5 === 0) await ask(other, payment.caller, 'DELETE', payment);
      if (stranger === payment.caller) continue;
      for (const method of ['GET', 'DELETE'] as const) {
        const { status } = await ask(one, stranger, method, payment);
        if (status < 400) violations.push(`${stranger} got ${status} for a payment of ${payment.caller}`);
      }
    }
  }

  const running = Promise.all(Array.from({ length: workers }, work));
  const morePayments = (count: number) => {
    const goal = payments.length + count;
    return until(60_000, `${count} more payments are made`, () => payments.length >= goal);
  };
  await morePayments(paymentsPerPhase);
  if (said) await say(instances[0], ...said);
  if (activated !== undefined) await activate(instances, activated);
  for (const instance of instances) {
    if (refusal) await assert.rejects(instance.reload(after), refusal);
    else await instance.reload(after);
    await morePayments(paymentsPerPhase);
  }
  isOver = true;
  await running;

  const initiated = banks.flatMap(({ requests }) =>
    requests.filter(({ operation }) => operation === 'initiatePayment').map(requestIdOf),
  );
  assert.equal(new Set(initiated).size, initiated.length, 'nothing was paid twice');
  for (const { name, requests } of banks) {
    const strangers = requests.filter(({ url, operation }) => {
      const id = url.slice(url.indexOf(transfersPath) + transfersPath.length + 1);
      return operation !== 'initiatePayment' && id !== '' && !id.startsWith(`${name}-`);
    });
    assert.deepEqual(
      strangers.map(({ method, url }) => `${method} ${url}`),
      [],
      `wrong requests to ${name}`,
    );
  }
  assert.deepEqual(violations, []);
  return { instances, payments };
}

async function say(gateway: GatewayUnderTest, path: string, to: string): Promise<void> {
  const { status, text } = await callAdminApi(gateway, 'POST', path, { to, reason: 'a test' });
  assert.equal(status, 200, text);
}

async function activate(instances: readonly GatewayUnderTest[], environment: string): Promise<void> {
  const [first] = instances;
  assert.ok(first);
  const switched = { environment, confirm: environment, reason: 'a test' };
  const { status, text } = await callAdminApi(first, 'PUT', '/api/environments/active', switched);
  assert.equal(status, 200, text);
  for (const instance of instances)
    await until(60_000, 'the instance knows the active environment', async () =>
      JSON.stringify(await readAdminApi(instance, '/api/environments')).includes(`"active":"${environment}"`),
    );
}

/** A change of clients and tenants, in front of one bank. */
async function reloadClientsUnderLoad(t: TestContext, { before, after, ...change }: Omit<Change, 'banks'>) {
  const bank = await startBank(t, { name: 'bank' });
  const environments = { sandbox: { baseUrl: bank.baseUrl } };
  return reloadUnderLoad(t, {
    ...change,
    banks: [bank],
    before: { environments, ...before },
    after: { environments, ...after },
  });
}

function requestIdOf({ rawHeaders }: { readonly rawHeaders: readonly string[] }): string {
  const index = rawHeaders.findIndex((name) => name.toLowerCase() === 'x-request-id');
  return rawHeaders[index + 1] ?? assert.fail('a request without X-Request-ID');
}

/** Fails unless every payment is replayed and readable on both instances. */
async function assertAllContinue(
  instances: readonly GatewayUnderTest[],
  payments: readonly Payment[],
): Promise<void> {
  for (const [index, payment] of payments.entries()) {
    const instance = instances[index % 2] ?? assert.fail();
    const repeat = await repeatWhile('STATE_UNAVAILABLE', () =>
      pay(instance, payment.caller, payment.requestId),
    );
    assert.deepEqual([repeat.header('Idempotent-Replayed'), repeat.text], ['true', payment.text]);
    const read: Reply = await repeatWhile('STATE_UNAVAILABLE', () =>
      ask(instance, payment.caller, 'GET', payment),
    );
    assert.equal(read.status, 200, read.text);
  }
}

/** Fails unless requests for every payment of the filter get this error on both instances. */
async function assertAllRefused(
  instances: readonly GatewayUnderTest[],
  payments: readonly Payment[],
  code: string,
  caller: (payment: Payment) => Caller = (payment) => payment.caller,
): Promise<void> {
  assert.ok(payments.length > 0);
  for (const [index, payment] of payments.entries()) {
    const instance = instances[index % 2] ?? assert.fail();
    for (const method of ['GET', 'DELETE'] as const) {
      const { status, header } = await ask(instance, caller(payment), method, payment);
      assert.equal(header('Penstock-Error') ?? status, code);
    }
  }
}

describe('two instances that reload under load', { skip: skipWithoutRedis }, () => {
  test('continue all payments of a tenant that is renamed', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop', 'rival'],
      before: { clients: [client('shop'), client('rival')] },
      said: ['/api/tenants/shop/rename', 'store'],
      after: { clients: [client('shop', 'store'), client('rival')] },
    });
    await assertAllContinue(instances, payments);
  });

  test('refuse to rename a tenant without a command, and continue as before', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop', 'rival'],
      before: { clients: [client('shop'), client('rival')] },
      after: { clients: [client('shop', 'store'), client('rival')] },
      refusal: /penstock tenants rename shop store/,
    });
    await assertAllContinue(instances, payments);
  });

  test('hide the payments of a tenant that is removed', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop', 'rival'],
      before: { clients: [client('shop'), client('rival')] },
      after: { clients: [client('shop')] },
    });
    const ofRemoved = payments.filter(({ caller }) => caller === 'rival');
    await assertAllRefused(instances, ofRemoved, 'PAYMENT_UNKNOWN', () => 'shop');
    await assertAllContinue(
      instances,
      payments.filter(({ caller }) => caller === 'shop'),
    );
  });

  test('refuse requests for payments of an environment that is removed', async (t) => {
    const banks = [await startBank(t, { name: 'sandbox' }), await startBank(t, { name: 'production' })];
    const [sandbox, production] = banks.map(({ baseUrl }) => ({ baseUrl }));
    const { instances, payments } = await reloadUnderLoad(t, {
      banks,
      callers: [undefined],
      before: { environments: { active: 'sandbox', sandbox, production } },
      activated: 'production',
      after: { environments: { production } },
    });
    const inSandbox = payments.filter(({ paymentId }) => paymentId.startsWith('sandbox-'));
    await assertAllRefused(instances, inSandbox, 'STATE_UNAVAILABLE');
  });

  test('refuse another address of a bank, and continue as before', async (t) => {
    const banks = [await startBank(t, { name: 'old' }), await startBank(t, { name: 'new' })];
    const [before, after] = banks.map(({ baseUrl }) => ({ environments: { sandbox: { baseUrl } } }));
    const { instances, payments } = await reloadUnderLoad(t, {
      banks,
      callers: [undefined],
      before: before ?? {},
      after: after ?? {},
      refusal: /penstock environment moved sandbox/,
    });
    assert.ok(payments.every(({ paymentId }) => paymentId.startsWith('old-')));
    await assertAllContinue(instances, payments);
  });

  test('continue all payments of a bank that moved to another address', async (t) => {
    const bank = await startBank(t, { name: 'bank' });
    const moved = bank.baseUrl.replace('127.0.0.1', 'localhost');
    const { instances, payments } = await reloadUnderLoad(t, {
      banks: [bank],
      callers: [undefined],
      before: { environments: { sandbox: { baseUrl: bank.baseUrl } } },
      said: ['/api/environments/sandbox/moved', moved],
      after: { environments: { sandbox: { baseUrl: moved } } },
    });
    await assertAllContinue(instances, payments);
  });

  test('refuse clients for the first time while the payments without clients belong to nobody', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: [undefined],
      before: {},
      after: { clients: [client('shop')] },
      refusal: /penstock tenants rename anonymous NEW/,
    });
    await assertAllContinue(instances, payments);
  });

  test('continue payments without clients for the first client, whose tenant made them', async (t) => {
    // Callers send their key from the beginning: the gateway without clients ignores it.
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop'],
      before: {},
      said: ['/api/tenants/anonymous/rename', 'shop'],
      after: { clients: [client('shop')] },
    });
    await assertAllContinue(instances, payments);
  });
});
