import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createAffinityStore } from '../../../src/environments/affinity.ts';
import type { PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import { createInitiationOf } from '../../../src/environments/initiation-of.ts';
import { type Identities, namesAsIdentities } from '../../../src/request/identities.ts';
import type { PisRequest } from '../../../src/request/messages.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { State } from '../../../src/state/ports.ts';
import { environmentOf } from '../../kit/environment.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { dayMs } from './fake-clocks.ts';
import { cancellation, initiation, rival } from './requests.ts';

const transfer = 'payments/sepa-credit-transfers';
const instant = 'payments/instant-sepa-credit-transfers';
const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop', initiatedAs: transfer };
const unknownProduct: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };

/** An instance of the gateway on a state that it may share with others. */
const instanceOn = (state: State) => createAffinityStore(state, 400 * dayMs, captureLog().log);

const paymentId = 'a-payment'; // of the requests in requests.ts

/** A request that was routed to an environment. */
const routed = (changes: Partial<PisRequest> = {}): PisRequest => ({
  ...cancellation(),
  environment: environmentOf({ standardVersion: '1.3.6' }),
  ...changes,
});

/** What an instance on this state knows after a request has read the record. */
async function initiationOn(state: State, request: PisRequest = routed()): Promise<string | undefined> {
  const affinity = instanceOn(state);
  await affinity.environmentsOf(paymentId, 'shop', 'rival');
  const found = createInitiationOf(affinity)(request);
  return found && `${found.paymentService}/${found.paymentProduct}`;
}

/** What is known of a payment that was recorded with these affinities. */
async function initiationIn(
  affinities: readonly PaymentAffinity[],
  request?: PisRequest,
): Promise<string | undefined> {
  const state = createFailingState();
  for (const affinity of affinities)
    await instanceOn(state).recordEnvironment(paymentId, affinity, 'expiring', () => false);
  return initiationOn(state, request);
}

/** One configured bank, `sandbox`, with a former address; one tenant, into which another one was merged. */
const merged: Identities = {
  ...namesAsIdentities,
  tenantIdsOf: () => ['shop', 'former-shop'],
  environmentWith: (id) => (id.startsWith('sandbox') ? 'sandbox' : undefined),
};

describe('the initiation of a payment', () => {
  for (const [what, createState] of [
    ['a state in memory', createMemoryState],
    ['a shared state', createFailingState],
  ] as const)
    test(`is known to every instance on ${what}, also after a restart`, async () => {
      const state = createState();
      await instanceOn(state).recordEnvironment(paymentId, inSandbox, 'expiring');
      assert.equal(await initiationOn(state), transfer);
    });

  test('costs no operation on the state', async () => {
    const state = createFailingState();
    const affinity = instanceOn(state);
    await affinity.recordEnvironment(paymentId, inSandbox, 'expiring');
    const before = state.operations.length;
    assert.deepEqual(createInitiationOf(affinity)(routed()), {
      paymentService: 'payments',
      paymentProduct: 'sepa-credit-transfers',
    });
    assert.equal(state.operations.length, before);
  });

  test('is unknown for a new payment, before the environment is chosen, and for other tenants and environments', async () => {
    assert.equal(await initiationIn([inSandbox], routed({ operation: initiation().operation })), undefined);
    assert.equal(await initiationIn([inSandbox], routed({ environment: undefined })), undefined);
    assert.equal(await initiationIn([inSandbox], routed({ client: rival })), undefined);
    assert.equal(await initiationIn([{ ...inSandbox, environment: 'production' }]), undefined);
    assert.equal(await initiationIn([]), undefined);
  });

  test('is that of the environment and the tenant of the request', async () => {
    const others = [
      { environment: 'production', tenant: 'shop', initiatedAs: instant },
      { environment: 'sandbox', tenant: 'rival', initiatedAs: instant },
    ];
    assert.equal(await initiationIn([...others, inSandbox]), transfer);
  });

  test('is unknown if the bank gives one id to payments of several products, in whatever order they are recorded', async () => {
    const asInstant = { ...inSandbox, initiatedAs: instant };
    assert.equal(await initiationIn([inSandbox, inSandbox]), transfer);
    for (const affinities of [
      [inSandbox, asInstant],
      [inSandbox, asInstant, inSandbox],
      [inSandbox, unknownProduct],
      [unknownProduct, inSandbox],
    ])
      assert.equal(await initiationIn(affinities), undefined);
  });

  test('is that of merged banks and tenants if they agree, and else unknown', async () => {
    const request = routed({ identities: merged });
    const former = { environment: 'sandbox@2', tenant: 'former-shop', initiatedAs: transfer };
    assert.equal(await initiationIn([inSandbox, former], request), transfer);
    assert.equal(await initiationIn([former], request), transfer);
    assert.equal(await initiationIn([inSandbox, { ...former, initiatedAs: instant }], request), undefined);
    const { initiatedAs: _, ...withoutProduct } = former;
    assert.equal(await initiationIn([inSandbox, withoutProduct], request), undefined);
  });

  test('becomes unknown on the instance that recorded it when another one records a second product', async () => {
    const state = createMemoryState();
    const shared = createFailingState(state);
    const affinity = instanceOn(shared);
    await affinity.recordEnvironment(paymentId, inSandbox, 'expiring');
    await instanceOn(createFailingState(state)).recordEnvironment(
      paymentId,
      { ...inSandbox, initiatedAs: instant },
      'expiring',
    );
    await setImmediate(); // the message arrives
    assert.equal(createInitiationOf(affinity)(routed()), undefined);
  });
});
