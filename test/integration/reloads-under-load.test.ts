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
import { call, jsonOf, type Reply, repeatWhile } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { change } from '../kit/tenants.ts';
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
  /** What the gateway says if it refuses the change. */
  readonly refused?: RegExp;
  /** The change of tenants or environments before the reloads, in the admin API of one instance. */
  readonly command?: { readonly path: string; readonly to: string };
}

/** How many payments are made before, between and after the reloads. */
const paymentsPerPhase = 15;
const workers = 6;

/** Reloads one instance and then the other under load, and checks that nothing was violated. @returns both, and all payments */
async function reloadUnderLoad(t: TestContext, { banks, callers, before, after, refused, command }: Change) {
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
  if (command) await change(instances[0], command.path, command.to);
  for (const instance of instances) {
    if (refused) await assert.rejects(instance.reload(after), refused);
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
      command: { path: 'tenants/shop/rename', to: 'store' },
      after: { clients: [client('shop', 'store'), client('rival')] },
    });
    await assertAllContinue(instances, payments);
  });

  test('refuse to rename a tenant without the command, and continue as before', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop', 'rival'],
      before: { clients: [client('shop'), client('rival')] },
      after: { clients: [client('shop', 'store'), client('rival')] },
      refused: /tenants rename shop store/,
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
      after: { environments: { production } },
    });
    const inSandbox = payments.filter(({ paymentId }) => paymentId.startsWith('sandbox-'));
    await assertAllRefused(instances, inSandbox, 'STATE_UNAVAILABLE');
  });

  test('refuse another address for an environment, and send nothing there', async (t) => {
    const banks = [await startBank(t, { name: 'old' }), await startBank(t, { name: 'new' })];
    const [before, after] = banks.map(({ baseUrl }) => ({ environments: { sandbox: { baseUrl } } }));
    const { instances, payments } = await reloadUnderLoad(t, {
      banks,
      callers: [undefined],
      before: before ?? {},
      after: after ?? {},
      refused: /environment moved sandbox/,
    });
    await assertAllContinue(instances, payments);
    assert.deepEqual(banks[1]?.requests, []);
  });

  test('continue all payments of a bank that moved to another address', async (t) => {
    const bank = await startBank(t, { name: 'bank' });
    const moved = bank.baseUrl.replace('127.0.0.1', 'localhost');
    const { instances, payments } = await reloadUnderLoad(t, {
      banks: [bank],
      callers: [undefined],
      before: { environments: { sandbox: { baseUrl: bank.baseUrl } } },
      command: { path: 'environments/sandbox/moved', to: moved },
      after: { environments: { sandbox: { baseUrl: moved } } },
    });
    await assertAllContinue(instances, payments);
  });

  test('refuse clients for the first time while no tenant has the payments without clients', async (t) => {
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: [undefined],
      before: {},
      after: { clients: [client('shop')] },
      refused: /tenants rename anonymous NEW/,
    });
    await assertAllContinue(instances, payments);
  });

  test('continue payments without clients for the tenant of the first client', async (t) => {
    // Callers send their key from the beginning: the gateway without clients ignores it.
    const { instances, payments } = await reloadClientsUnderLoad(t, {
      callers: ['shop'],
      before: {},
      command: { path: 'tenants/anonymous/rename', to: 'shop' },
      after: { clients: [client('shop')] },
    });
    await assertAllContinue(instances, payments);
  });
});
