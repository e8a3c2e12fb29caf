import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import type { Home } from '../../../src/environments/payment-record.ts';
import { GatewayError } from '../../../src/flow/errors.ts';
import type { PisRequest, RoutedRequest } from '../../../src/flow/messages.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { factsOf, outOfReachOf } from './facts.ts';
import { answerOf, authorisation, cancellation, errorOf, initiation, rival, statusRead } from './requests.ts';

const inProduction: Home = { environment: 'production', tenant: 'shop' };

/** Where the stage sends a request. */
async function sentTo(facts: ReturnType<typeof factsOf>, request: PisRequest): Promise<string> {
  const answer = await chooseEnvironment(facts)(request, async ({ environment }) =>
    answerOf(environment.name),
  );
  return answer.environment;
}

const refusalOf = async (facts: ReturnType<typeof factsOf>, request: PisRequest) =>
  (await errorOf(() => sentTo(facts, request))).code;

describe('chooseEnvironment', () => {
  test('hands on the request as it came, with its environment', async () => {
    const request = statusRead();
    const passed: RoutedRequest[] = [];
    await chooseEnvironment(factsOf({ homes: [inProduction] }))(request, async (routed) => {
      passed.push(routed);
      return answerOf(routed.environment.name);
    });
    const { environment, ...rest } = passed[0] ?? assert.fail('nothing was handed on');
    assert.equal(environment.origin, 'https://production.bank.example');
    assert.deepEqual(rest, request);
  });

  test('sends a new payment to the active environment, and another one to where it lives', async () => {
    const facts = factsOf({ active: 'sandbox', homes: [inProduction] });
    assert.equal(await sentTo(facts, initiation()), 'sandbox');
    assert.equal(await sentTo(facts, cancellation()), 'production');
  });

  test('with one environment and one tenant never asks the state, for there is only one answer', async () => {
    const facts = outOfReachOf(factsOf({ environments: ['bank'], active: undefined }));
    for (const request of [initiation(), statusRead(), cancellation(), authorisation()]) {
      assert.equal(await sentTo(facts, request), 'bank');
    }
  });

  test('with one environment and several tenants asks whose payment it is', async () => {
    const homes = [{ environment: 'sandbox', tenant: 'shop' }];
    const facts = factsOf({ environments: ['sandbox'], tenants: 2, homes });
    assert.equal(await sentTo(facts, statusRead()), 'sandbox');
    assert.equal(await refusalOf(facts, statusRead({ client: rival })), 'PAYMENT_UNKNOWN');
  });

  test('with several tenants sends nothing for a payment that nobody remembers, wherever it is asked for', async () => {
    const facts = factsOf({ tenants: 2 });
    for (const named of [undefined, 'sandbox', 'production']) {
      for (const request of [statusRead, cancellation, authorisation]) {
        assert.equal(await refusalOf(facts, request({ named })), 'PAYMENT_UNKNOWN');
      }
    }
  });

  test('with one tenant a forgotten payment is read in the active environment, and changed only where it is named', async () => {
    const facts = factsOf({ active: 'production' });
    assert.equal(await sentTo(facts, statusRead()), 'production');
    assert.equal(await refusalOf(facts, cancellation()), 'ENVIRONMENT_MISMATCH');
    assert.equal(await sentTo(facts, cancellation({ named: 'sandbox' })), 'sandbox');
  });

  test('with one tenant still sends nothing for a payment that was remembered as that of another', async () => {
    const facts = factsOf({ homes: [{ environment: 'sandbox', tenant: 'rival' }] });
    assert.equal(await refusalOf(facts, statusRead()), 'PAYMENT_UNKNOWN');
  });

  test('refuses what belongs to an environment that is not configured any more', async () => {
    const facts = factsOf({
      environments: ['sandbox', 'staging'],
      active: 'production',
      homes: [inProduction],
    });
    assert.equal(await refusalOf(facts, initiation()), 'STATE_UNAVAILABLE');
    assert.equal(await refusalOf(facts, statusRead()), 'STATE_UNAVAILABLE');
  });

  test('names the environment in every error that comes back, for a TPP must know which side failed', async () => {
    const stage = chooseEnvironment(factsOf({ homes: [inProduction] }));
    for (const thrown of [new GatewayError('OUTCOME_UNKNOWN', 'no answer'), new Error('a fault of ours')]) {
      const error = await errorOf(() => stage(statusRead(), () => Promise.reject(thrown)));
      assert.equal(error.environment, 'production');
    }
  });

  test('chooses once: a switch during the call changes nothing about it', async () => {
    const facts = factsOf({ active: 'sandbox' });
    let active = 'sandbox';
    const known = () => ({ environment: active, version: 1, epoch: 'first' });
    const stage = chooseEnvironment({
      ...facts,
      active: { ...facts.active, known, read: async () => known() },
    });
    const answer = await stage(initiation(), async ({ environment }) => {
      active = 'production';
      return answerOf(environment.name);
    });
    assert.equal(answer.environment, 'sandbox');
  });
});

describe('chooseEnvironment, while the shared state is out of reach,', () => {
  const facts = outOfReachOf(factsOf({ active: 'production' }));

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
    const { log, lines } = createLogLines();
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
    const never = outOfReachOf(factsOf({ active: undefined, ifStateFails: 'allow' }));
    assert.equal(await refusalOf(never, initiation()), 'STATE_UNAVAILABLE');
  });

  test('takes nobody at his word about whose payment it is among several tenants, even if going on is allowed', async () => {
    const several = { ...facts, tenants: 2, ifStateFails: 'allow' } as const;
    assert.equal(await refusalOf(several, statusRead({ named: 'sandbox' })), 'STATE_UNAVAILABLE');
  });
});
