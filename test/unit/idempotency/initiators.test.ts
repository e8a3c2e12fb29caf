import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRestoreWrite } from '../../../src/idempotency/restore-write.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { bankResponse, createInstance, type Instance, useFakeTime, windowMs } from './instance.ts';
import { cancellation, initiation } from './requests.ts';

const clients = ['shop', 'rival', 'third'].map((tenant, index) => ({
  name: tenant,
  tenant,
  apiKeySha256: String(index).repeat(64),
}));

/** Instances with several tenants on one state. */
function startThree(t: Parameters<typeof useFakeTime>[0]) {
  const time = useFakeTime(t);
  const state = createMemoryState();
  const all = [1, 2, 3].map(() => createInstance(state, { clients }));
  const [one, two, three] = all as [Instance, Instance, Instance];
  return { time, state, one, two, three };
}

async function sendFor(instance: Instance, tenant: string, environment = 'sandbox') {
  const claim = await instance.claim(initiation({ tenant }));
  await claim.markSending(environment);
  const mayBeForeign = (paymentId?: string) => claim.mayBelongToOther(paymentId, [tenant], 0);
  return Object.assign(claim, { mayBeForeign });
}

const payment = (id: string) => bankResponse(201, JSON.stringify({ paymentId: id }));

describe('a payment that the bank names', () => {
  test('may belong to a tenant that has sent the same X-Request-ID before, until the outcome of that one is known', async (t) => {
    const { one, two } = startThree(t);
    const first = await sendFor(one, 'shop');
    const second = await sendFor(two, 'rival');
    assert.equal(await second.mayBeForeign('p-1'), true);
    await first.markInDoubt('no answer');
    assert.equal(await second.mayBeForeign('p-1'), true);
    await first.recordResponse(payment('p-1'));
    assert.equal(await second.mayBeForeign('p-1'), true);
    assert.equal(await second.mayBeForeign('p-2'), false);
    assert.equal(await second.mayBeForeign(), true);
    assert.equal(await first.mayBeForeign('p-1'), false);
  });

  for (const [what, end] of [
    ['was released', (first: Awaited<ReturnType<typeof sendFor>>) => first.release()],
    ['was refused by the bank', (first) => first.recordResponse(bankResponse(400))],
  ] as const satisfies readonly (readonly [
    string,
    (first: Awaited<ReturnType<typeof sendFor>>) => Promise<void>,
  ])[])
    test(`does not belong to a tenant whose request ${what}`, async (t) => {
      const { one, two } = startThree(t);
      await end(await sendFor(one, 'shop'));
      assert.equal(await (await sendFor(two, 'rival')).mayBeForeign('p-1'), false);
    });

  for (const [what, refusal] of [
    ['401 and a paymentId', bankResponse(401, '{"paymentId":"p-1"}')],
    ['429 and a paymentId', bankResponse(429, '{"paymentId":"p-1"}')],
    ['401 and a Location', bankResponse(401, '{}', [['Location', '/v1/payments/sepa-credit-transfers/p-1']])],
  ] as const)
    test(`may belong to a tenant whose request the bank refused with ${what}`, async (t) => {
      const { one, two } = startThree(t);
      await (await sendFor(one, 'shop')).recordResponse(refusal);
      assert.equal(await (await sendFor(two, 'rival')).mayBeForeign('p-1'), true);
    });

  test('belongs to the tenant whose request was answered, after the state has lost everything', async (t) => {
    const { one } = startThree(t);
    await (await sendFor(one, 'shop')).recordResponse(payment('p-1'));
    const onEmptyState = createInstance(createMemoryState(), { clients });
    const restore = createRestoreWrite({ ...onEmptyState.services, ownWrites: one.services.ownWrites });
    for (const write of one.services.ownWrites.all()) await restore(write);
    assert.equal(await (await sendFor(onEmptyState, 'rival')).mayBeForeign('p-1'), true);
  });

  test('does not belong to a tenant that has sent the same X-Request-ID to another environment', async (t) => {
    const { one, two } = startThree(t);
    await sendFor(one, 'shop', 'production');
    assert.equal(await (await sendFor(two, 'rival')).mayBeForeign('p-1'), false);
  });

  test('may belong to any of several tenants before, also if the first of them has made none', async (t) => {
    const { one, two, three } = startThree(t);
    await (await sendFor(one, 'shop')).release();
    await sendFor(two, 'rival');
    assert.equal(await (await sendFor(three, 'third')).mayBeForeign('p-1'), true);
    assert.equal(await (await sendFor(one, 'shop')).mayBeForeign('p-1'), true);
  });

  test('may belong to a tenant whose request has been in doubt for longer than the idempotency window', async (t) => {
    const { time, one, two } = startThree(t);
    await (await sendFor(one, 'shop')).markInDoubt('no answer');
    await two.services.inDoubt.scan();
    time.skip(10 * windowMs);
    assert.equal(await (await sendFor(two, 'rival')).mayBeForeign('p-1'), true);
  });

  test('may belong to a tenant whose request is in doubt, although the bank has refused that of another tenant since then', async (t) => {
    const { time, one, two, three } = startThree(t);
    await (await sendFor(one, 'shop')).markInDoubt('no answer');
    await two.services.inDoubt.scan();
    await (await sendFor(two, 'rival')).recordResponse(bankResponse(400));
    time.skip(2 * windowMs);
    assert.equal(await (await sendFor(three, 'third')).mayBeForeign('p-1'), true);
  });

  test('may belong to a tenant whose request a release before this record put in doubt', async (t) => {
    const { state, one, two } = startThree(t);
    const former = await createInstance(state).claim(initiation({ tenant: 'shop' }));
    former.markSendingUnrecorded('sandbox');
    await former.markInDoubt('no answer');
    await one.services.inDoubt.scan();
    assert.equal(await (await sendFor(two, 'rival')).mayBeForeign('p-1'), true);
  });
});

test('only initiations are recorded, also those of a gateway with one tenant: a reload may add others', async (t) => {
  useFakeTime(t);
  const keys: string[] = [];
  const state = createMemoryState();
  const { writeIfAbsent } = state.keyValues;
  const keyValues = {
    ...state.keyValues,
    writeIfAbsent: (...all: Parameters<typeof writeIfAbsent>) => {
      keys.push(all[0]);
      return writeIfAbsent(...all);
    },
  };
  const recorded = () => keys.filter((key) => key.startsWith('ledger:initiators:')).length;
  const instance = createInstance({ ...state, keyValues });
  await (await instance.claim(cancellation())).markSending('sandbox');
  assert.equal(recorded(), 0);
  await (await instance.claim()).markSending('sandbox');
  assert.equal(recorded(), 1);
});
