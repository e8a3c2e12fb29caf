import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createReadInitiation } from '../../../src/idempotency/initiation-outcome.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { createFailingState } from '../../kit/failing-state.ts';
import {
  bankResponse,
  createInstance,
  errorCodeOf,
  inDoubtWriteOf,
  lateAnswerMs,
  leaseMs,
  startInstance,
} from './instance.ts';
import { initiation, requestId } from './requests.ts';

const nothing = { environment: undefined, status: undefined, paymentId: undefined };

function start(t: Parameters<typeof startInstance>[0]) {
  const started = startInstance(t);
  const read = createReadInitiation(started.instance.services);
  return { ...started, read: (tenantIds: readonly string[] = ['shop']) => read(tenantIds, requestId) };
}

describe('the outcome of an initiation, as its TPP sees it', () => {
  test('is none without an entry, and none of another tenant', async (t) => {
    const { instance, read } = start(t);
    assert.equal(await read(), undefined);
    await instance.claim();
    assert.equal((await read())?.state, 'in-progress');
    assert.equal(await read(['rival']), undefined);
  });

  test('is found in any letter case, and under each identity of a merged tenant', async (t) => {
    const { instance } = start(t);
    await instance.claim();
    const read = createReadInitiation(instance.services);
    assert.equal((await read(['rival', 'shop'], requestId.toUpperCase()))?.state, 'in-progress');
  });

  test('is the response of the bank with the payment', async (t) => {
    const { instance, read } = start(t);
    await instance.send(initiation(), async (request) => {
      await request.writeAheadMark?.markSending('sandbox');
      return bankResponse(201, '{"paymentId":"payment-1"}');
    });
    assert.deepEqual(await read(), {
      state: 'answered',
      environment: 'sandbox',
      status: 201,
      paymentId: 'payment-1',
    });
  });

  test('is in doubt after a 5xx of the bank, and executed when an operator has confirmed it', async (t) => {
    const { time, state, instance, read } = start(t);
    await instance.send(initiation(), async (request) => {
      await request.writeAheadMark?.markSending('sandbox');
      return bankResponse(502, '{"paymentId":"of-the-error"}');
    });
    assert.deepEqual(await read(), { ...nothing, state: 'in-doubt', environment: 'sandbox' });
    time.skip(lateAnswerMs + 60_000);
    const { id } = await inDoubtWriteOf(state);
    const resolution = {
      id,
      who: 'ann',
      outcome: 'happened',
      paymentId: 'payment-1',
      reason: 'asked',
    } as const;
    assert.equal((await instance.resolve(resolution)).kind, 'resolved');
    assert.deepEqual(await read(), {
      ...nothing,
      state: 'executed',
      environment: 'sandbox',
      paymentId: 'payment-1',
    });
  });

  test('is in doubt after an unknown outcome, and none when the claim was released', async (t) => {
    const { instance, read } = start(t);
    const fail = (code: 'OUTCOME_UNKNOWN' | 'UPSTREAM_UNREACHED') =>
      errorCodeOf(
        instance.send(initiation(), async (request) => {
          await request.writeAheadMark?.markSending('sandbox');
          throw new GatewayError(code, 'It failed.');
        }),
      );
    await fail('UPSTREAM_UNREACHED');
    assert.equal(await read(), undefined);
    await fail('OUTCOME_UNKNOWN');
    assert.equal((await read())?.state, 'in-doubt');
  });

  test('is in doubt if the instance that was sending it is dead, and not sent if it had only claimed it', async (t) => {
    const { time, state, instance } = start(t);
    const { services } = createInstance(state);
    const read = createReadInitiation(services);
    const claim = await instance.claim();
    const other = '5d2b7bd5-a1ad-4be9-a9b5-6f5a8f1d5f1c';
    await instance.claim(initiation({ requestId: other }));
    await claim.markSending('sandbox');
    assert.equal((await read(['shop'], requestId))?.state, 'in-progress');
    time.skip(leaseMs);
    assert.deepEqual(await read(['shop'], requestId), {
      ...nothing,
      state: 'in-doubt',
      environment: 'sandbox',
    });
    assert.deepEqual(await read(['shop'], other), { ...nothing, state: 'not-sent' });
  });

  test('is in doubt if the entry cannot be read', async (t) => {
    const { instance } = start(t);
    const read = createReadInitiation({
      ...instance.services,
      store: { read: async () => ({ raw: 'of a later release', entry: undefined }) },
    });
    assert.deepEqual(await read(['shop'], requestId), { ...nothing, state: 'in-doubt' });
  });

  test('fails while the state is unavailable', async (t) => {
    const { state } = start(t);
    const failing = createFailingState(state);
    const read = createReadInitiation(createInstance(failing).services);
    failing.fail();
    assert.equal(await errorCodeOf(read(['shop'], requestId)), 'STATE_UNAVAILABLE');
  });
});
