import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createAffinityStore, type PaymentAffinity } from '../../../src/environments/affinity.ts';
import { createInitiationOf } from '../../../src/environments/initiation-of.ts';
import { type Identities, namesAsIdentities } from '../../../src/request/identities.ts';
import type { PisRequest } from '../../../src/request/messages.ts';
import type { Database } from '../../../src/store/database.ts';
import { createPaymentTable } from '../../../src/store/payments.ts';
import { newGatewayDatabase } from '../../kit/database.ts';
import { environmentOf } from '../../kit/environment.ts';
import { createFaultyDatabase } from '../../kit/faulty-database.ts';
import { dayMs } from './fake-clocks.ts';
import { cancellation, initiation, rival } from './requests.ts';
import { storePayment } from './stored-payments.ts';

const transfer = 'payments/sepa-credit-transfers';
const instant = 'payments/instant-sepa-credit-transfers';
const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop', initiatedAs: transfer };

/** An instance of the gateway on a database that it may share with others. */
const instanceOn = (database: Database) => createAffinityStore(createPaymentTable(database), 400 * dayMs);

const paymentId = 'a-payment'; // of the requests in requests.ts

/** A request that was routed to an environment. */
const routed = (changes: Partial<PisRequest> = {}): PisRequest => ({
  ...cancellation(),
  environment: environmentOf({ standardVersion: '1.3.6' }),
  ...changes,
});

/** What an instance knows after a request has read the payments with this id. */
async function initiationOn(database: Database, request: PisRequest = routed()): Promise<string | undefined> {
  const affinity = instanceOn(database);
  await affinity.environmentsOf(paymentId, 'shop');
  const found = createInitiationOf(affinity)(request);
  return found && `${found.paymentService}/${found.paymentProduct}`;
}

/** What is known of a payment that was stored with these affinities. */
async function initiationIn(
  t: TestContext,
  affinities: readonly PaymentAffinity[],
  request?: PisRequest,
): Promise<string | undefined> {
  const database = await newGatewayDatabase(t);
  for (const affinity of affinities) assert.ok(await storePayment(database, paymentId, affinity));
  return initiationOn(database, request);
}

/** A tenant and an environment that were renamed. */
const renamed: Identities = {
  ...namesAsIdentities,
  tenantIdOf: () => 'first-name',
  environmentIdOf: () => 'bank-a',
};

describe('the initiation of a payment', () => {
  test('is known to every instance', async (t) => {
    const database = await newGatewayDatabase(t);
    await storePayment(database, paymentId, inSandbox);
    for (const _ of [1, 2]) assert.equal(await initiationOn(database), transfer);
  });

  test('is known at once to the instance that has stored the payment, without a statement', async (t) => {
    const database = createFaultyDatabase(await newGatewayDatabase(t));
    const affinity = instanceOn(database);
    affinity.cacheStored(paymentId, inSandbox);
    assert.deepEqual(createInitiationOf(affinity)(routed()), {
      paymentService: 'payments',
      paymentProduct: 'sepa-credit-transfers',
    });
    assert.deepEqual(database.statements, []);
  });

  test('is unknown for a new payment, before the environment is chosen, and for other tenants and environments', async (t) => {
    const { operation } = initiation();
    assert.equal(await initiationIn(t, [inSandbox], routed({ operation })), undefined);
    assert.equal(await initiationIn(t, [inSandbox], routed({ environment: undefined })), undefined);
    assert.equal(await initiationIn(t, [inSandbox], routed({ client: rival })), undefined);
    assert.equal(await initiationIn(t, [{ ...inSandbox, environment: 'production' }]), undefined);
    assert.equal(await initiationIn(t, []), undefined);
  });

  test('is that of the environment of the request', async (t) => {
    const other = { environment: 'production', tenant: 'shop', initiatedAs: instant };
    assert.equal(await initiationIn(t, [other, inSandbox]), transfer);
  });

  test('is unknown if the bank gives one id to payments of several products, in whatever order they are stored', async (t) => {
    const asInstant = { ...inSandbox, initiatedAs: instant };
    assert.equal(await initiationIn(t, [inSandbox, inSandbox]), transfer);
    for (const affinities of [
      [inSandbox, asInstant],
      [inSandbox, asInstant, inSandbox],
    ])
      assert.equal(await initiationIn(t, affinities), undefined);
  });

  test('is that of a renamed tenant in a renamed environment', async (t) => {
    const request = routed({ identities: renamed });
    const former = { environment: 'bank-a', tenant: 'first-name', initiatedAs: transfer };
    assert.equal(await initiationIn(t, [{ ...inSandbox, initiatedAs: instant }, former], request), transfer);
    assert.equal(await initiationIn(t, [inSandbox], request), undefined);
  });

  test('becomes unknown on the instance that stored it when a second product has the id', async (t) => {
    const affinity = instanceOn(await newGatewayDatabase(t));
    affinity.cacheStored(paymentId, inSandbox);
    affinity.cacheStored(paymentId, { ...inSandbox, initiatedAs: instant });
    assert.equal(createInitiationOf(affinity)(routed()), undefined);
  });
});
