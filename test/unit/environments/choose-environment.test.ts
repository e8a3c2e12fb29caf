import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AffinityRetention, PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisRequest, RoutedRequest } from '../../../src/request/messages.ts';
import { captureLog } from '../../kit/log-capture.ts';
import { dependenciesFor, withRecordedAffinities, withUnreachableState } from './dependencies.ts';
import {
  authorisation,
  bankResponse,
  cancellation,
  errorOf,
  initiation,
  rival,
  shop,
  statusRead,
} from './requests.ts';

const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };

/** Where the stage sends a request. */
async function sentTo(facts: ReturnType<typeof dependenciesFor>, request: PisRequest): Promise<string> {
  const answer = await chooseEnvironment(facts)(request, async ({ environment }) =>
    bankResponse(environment.name),
  );
  return answer.environment;
}

const refusalOf = async (facts: ReturnType<typeof dependenciesFor>, request: PisRequest) =>
  (await errorOf(() => sentTo(facts, request))).code;

describe('chooseEnvironment', () => {
  test('hands on the request as it came, with its environment', async () => {
    const request = statusRead();
    const passed: RoutedRequest[] = [];
    await chooseEnvironment(dependenciesFor({ affinities: [inProduction] }))(request, async (routed) => {
      passed.push(routed);
      return bankResponse(routed.environment.name);
    });
    const { environment, ...rest } = passed[0] ?? assert.fail('nothing was handed on');
    assert.equal(environment.origin, 'https://production.bank.example');
    assert.deepEqual(rest, request);
  });

  test('sends a new payment to the active environment, and another one to where it lives', async () => {
    const facts = dependenciesFor({ active: 'sandbox', affinities: [inProduction] });
    assert.equal(await sentTo(facts, initiation()), 'sandbox');
    assert.equal(await sentTo(facts, cancellation()), 'production');
  });

  test('with one environment and one tenant never asks the state, for there is only one answer', async () => {
    const facts = withUnreachableState(dependenciesFor({ environments: ['bank'], active: undefined }));
    for (const request of [initiation(), statusRead(), cancellation(), authorisation()]) {
      assert.equal(await sentTo(facts, request), 'bank');
    }
  });

  test('with one environment and several tenants asks whose payment it is', async () => {
    const affinities = [{ environment: 'sandbox', tenant: 'shop' }];
    const facts = dependenciesFor({ environments: ['sandbox'], tenants: 2, affinities });
    assert.equal(await sentTo(facts, statusRead()), 'sandbox');
    assert.equal(await refusalOf(facts, statusRead({ client: rival })), 'PAYMENT_UNKNOWN');
  });

  test('with several tenants sends nothing for a payment that nobody remembers, wherever it is asked for', async () => {
    const facts = dependenciesFor({ tenants: 2 });
    for (const named of [undefined, 'sandbox', 'production']) {
      for (const request of [statusRead, cancellation, authorisation]) {
        assert.equal(await refusalOf(facts, request({ named })), 'PAYMENT_UNKNOWN');
      }
    }
  });

  test('with one tenant a forgotten payment is read in the active environment, and changed only where it is named', async () => {
    const facts = dependenciesFor({ active: 'production' });
    assert.equal(await sentTo(facts, statusRead()), 'production');
    assert.equal(await refusalOf(facts, cancellation()), 'ENVIRONMENT_MISMATCH');
    assert.equal(await sentTo(facts, cancellation({ named: 'sandbox' })), 'sandbox');
  });

  test('with one tenant still sends nothing for a payment that was remembered as that of another', async () => {
    const facts = dependenciesFor({ affinities: [{ environment: 'sandbox', tenant: 'rival' }] });
    assert.equal(await refusalOf(facts, statusRead()), 'PAYMENT_UNKNOWN');
  });

  test('refuses what belongs to an environment that is not configured any more', async () => {
    const facts = dependenciesFor({
      environments: ['sandbox', 'staging'],
      active: 'production',
      affinities: [inProduction],
    });
    assert.equal(await refusalOf(facts, initiation()), 'STATE_UNAVAILABLE');
    assert.equal(await refusalOf(facts, statusRead()), 'STATE_UNAVAILABLE');
  });

  test('names the environment in every error that comes back, for a TPP must know which side failed', async () => {
    const stage = chooseEnvironment(dependenciesFor({ affinities: [inProduction] }));
    for (const thrown of [new GatewayError('OUTCOME_UNKNOWN', 'no answer'), new Error('a fault of ours')]) {
      const error = await errorOf(() => stage(statusRead(), () => Promise.reject(thrown)));
      assert.equal(error.environment, 'production');
    }
  });

  test('chooses once: a switch during the call changes nothing about it', async () => {
    const facts = dependenciesFor({ active: 'sandbox' });
    let active = 'sandbox';
    const known = () => ({ environment: active, version: 1, epoch: 'first' });
    const stage = chooseEnvironment({
      ...facts,
      active: { ...facts.active, known, read: async () => known() },
    });
    const answer = await stage(initiation(), async ({ environment }) => {
      active = 'production';
      return bankResponse(environment.name);
    });
    assert.equal(answer.environment, 'sandbox');
  });
});

describe('chooseEnvironment, while the shared state is out of reach,', () => {
  const facts = withUnreachableState(dependenciesFor({ active: 'production' }));

  test('refuses everything that it would have to guess', async () => {
    for (const request of [
      initiation(),
      initiation({ named: 'sandbox' }),
      statusRead(),
      cancellation({ named: 'sandbox' }),
    ]) {
      assert.equal(await refusalOf(facts, request), 'STATE_UNAVAILABLE');
    }
  });

  test('goes on by what it last knew if that is allowed, and says so loudly', async () => {
    const { log, lines } = captureLog();
    const allowing = { ...facts, ifStateFails: 'allow', log } as const;
    assert.equal(await sentTo(allowing, initiation()), 'production');
    assert.equal(await sentTo(allowing, initiation({ named: 'sandbox' })), 'sandbox');
    assert.equal(await sentTo(allowing, statusRead()), 'production');
    assert.equal(await sentTo(allowing, cancellation({ named: 'sandbox' })), 'sandbox');
    const said = lines.filter(({ message }) => message.includes('idempotency.ifStateFails allows'));
    assert.deepEqual(
      said.map(({ level, fields }) => [level, fields.why]),
      Array.from({ length: 4 }, () => ['warn', 'The shared state cannot be reached.']),
    );
  });

  test('changes no payment on a guess, even if going on is allowed', async () => {
    assert.equal(
      await refusalOf({ ...facts, ifStateFails: 'allow' }, cancellation()),
      'ENVIRONMENT_MISMATCH',
    );
  });

  test('takes no new payment if it never knew which environment is active, even if going on is allowed', async () => {
    const never = withUnreachableState(dependenciesFor({ active: undefined, ifStateFails: 'allow' }));
    assert.equal(await refusalOf(never, initiation()), 'STATE_UNAVAILABLE');
  });

  test('takes nobody at his word about whose payment it is among several tenants, even if going on is allowed', async () => {
    const several = { ...facts, tenants: 2, ifStateFails: 'allow' } as const;
    assert.equal(await refusalOf(several, statusRead({ named: 'sandbox' })), 'STATE_UNAVAILABLE');
  });
});

const productionAffinity: PaymentAffinity = { environment: 'production', tenant: 'shop' };

describe('chooseEnvironment learns', () => {
  interface Learnt {
    readonly id: string;
    readonly home: PaymentAffinity;
    readonly lasts: AffinityRetention;
  }

  /** What is learnt from the answer to a request. */
  async function learntFrom(request: PisRequest, body: unknown, status = 201) {
    const learnt: Learnt[] = [];
    const { log, lines } = captureLog();
    const facts = withRecordedAffinities(
      dependenciesFor({ active: 'production', affinities: [productionAffinity], log }),
      (id, home, lasts) => void learnt.push({ id, home, lasts }),
    );
    const answer = bankResponse('production', body, status);
    assert.equal(await chooseEnvironment(facts)(request, async () => answer), answer);
    return { learnt, lines };
  }

  test('where a payment was born, and whose it is, from the answer to its initiation', async () => {
    for (const status of [200, 201]) {
      const { learnt } = await learntFrom(initiation({ client: shop }), { paymentId: 'p-1' }, status);
      assert.deepEqual(learnt, [{ id: 'p-1', home: productionAffinity, lasts: 'expiring' }]);
    }
  });

  test('standing orders without an end', async () => {
    const { learnt } = await learntFrom(initiation({}, 'periodic-payments'), { paymentId: 'p-1' });
    assert.deepEqual(
      learnt.map(({ lasts }) => lasts),
      ['permanent'],
    );
  });

  test('nothing from a refusal of the bank, or from the answer to anything else', async () => {
    for (const status of [202, 400, 409, 500]) {
      assert.deepEqual((await learntFrom(initiation(), { paymentId: 'p-1' }, status)).learnt, []);
    }
    for (const request of [statusRead(), authorisation(), cancellation()]) {
      assert.deepEqual((await learntFrom(request, { paymentId: 'p-1' })).learnt, []);
    }
  });

  test('nothing from an answer that names no payment: it still goes to the TPP, and the log says so', async () => {
    const { learnt, lines } = await learntFrom(initiation(), { transactionStatus: 'RCVD' });
    assert.deepEqual(learnt, []);
    assert.deepEqual(
      lines.map(({ level, message }) => [level, message]),
      [['warn', 'the bank accepted a payment without naming a paymentId']],
    );
  });

  test('before the TPP has the answer: its next request may come at once', async () => {
    const learning = Promise.withResolvers<void>();
    const facts = dependenciesFor();
    let answered = false;
    const stage = chooseEnvironment({
      ...facts,
      affinity: { ...facts.affinity, recordEnvironment: () => learning.promise },
    });
    const answer = stage(initiation(), async () => bankResponse('sandbox', { paymentId: 'p-1' })).then(() => {
      answered = true;
    });
    await new Promise(setImmediate);
    assert.equal(answered, false);
    learning.resolve();
    await answer;
  });
});
