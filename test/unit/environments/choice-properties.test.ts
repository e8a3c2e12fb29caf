/** Whatever is remembered, asked for and allowed: what may never happen when an environment is chosen. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { forForgottenPayment, forKnownPayment, forNewPayment } from '../../../src/environments/choice.ts';
import { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import { GatewayError, kinds } from '../../../src/flow/errors.ts';
import { factsOf } from './facts.ts';
import {
  answerOf,
  authorisation,
  cancellation,
  errorOf,
  goesTo,
  initiation,
  lookOf,
  paymentRead,
  shop,
  statusRead,
} from './requests.ts';

const names = ['sandbox', 'production', 'staging', 'drill'] as const;

const homes = fc.uniqueArray(
  fc.record({ environment: fc.constantFrom(...names), tenant: fc.constantFrom('shop', 'rival', 'third') }),
  { minLength: 1, selector: ({ environment, tenant }) => `${environment} ${tenant}` },
);
const active = fc.option(fc.constantFrom(...names), { nil: undefined });

/** The door lets through only a name that the client may use. */
const asked = fc.subarray([...names], { minLength: 1 }).chain((environments) =>
  fc.record({
    client: fc.constant({ ...shop, environments }),
    named: fc.option(fc.constantFrom(...environments), { nil: undefined }),
  }),
);
const onPayment = fc.constantFrom(statusRead, paymentRead, cancellation, authorisation);

describe('whatever the homes, the header and the client', () => {
  test('the chosen environment is one that the client may use', () => {
    fc.assert(
      fc.property(homes, active, asked, onPayment, (remembered, now, question, request) => {
        const choices = [
          goesTo(() => forNewPayment(initiation(question), now)),
          goesTo(() => forKnownPayment(request(question), remembered)),
          goesTo(() => forForgottenPayment(request(question), now)),
        ];
        for (const choice of choices) {
          assert.ok(choice in kinds || question.client.environments.some((name) => name === choice), choice);
        }
      }),
    );
  });

  test('a remembered payment is looked for only where it lives for this tenant, and never by a guess', () => {
    fc.assert(
      fc.property(homes, asked, onPayment, (remembered, question, request) => {
        const choice = goesTo(() => forKnownPayment(request(question), remembered));
        if (choice in kinds) return;
        const own = remembered
          .filter(({ tenant }) => tenant === 'shop')
          .map(({ environment }) => environment);
        assert.ok(own.some((name) => name === choice));
        assert.ok(question.named === choice || own.length === 1);
      }),
    );
  });

  test('a payment of another tenant looks exactly like one that does not exist, and nothing is sent for either', async () => {
    const foreign = homes.map((all) => all.map((home) => ({ ...home, tenant: 'rival' })));
    const policy = fc.constantFrom('refuse', 'allow');
    await fc.assert(
      fc.asyncProperty(
        foreign,
        active,
        asked,
        onPayment,
        policy,
        async (remembered, now, question, request, ifStateFails) => {
          const answers = await Promise.all(
            [remembered, []].map((known) => {
              const stage = chooseEnvironment(
                factsOf({ environments: names, tenants: 2, active: now, homes: known, ifStateFails }),
              );
              return errorOf(() => stage(request(question), async () => answerOf('must not be asked')));
            }),
          );
          const [others, unknown] = answers.map(lookOf);
          assert.deepEqual(others, unknown);
          assert.equal(unknown?.code, 'PAYMENT_UNKNOWN');
        },
      ),
    );
  });

  test('an error of the choice names no environment and no tenant', () => {
    fc.assert(
      fc.property(homes, active, asked, onPayment, (remembered, now, question, request) => {
        const attempts = [
          () => forNewPayment(initiation(question), now),
          () => forKnownPayment(request(question), remembered),
          () => forForgottenPayment(request(question), now),
        ];
        for (const attempt of attempts) {
          try {
            attempt();
          } catch (thrown) {
            assert.ok(thrown instanceof GatewayError);
            assert.doesNotMatch(thrown.message, /sandbox|production|staging|drill|shop|rival|third/);
          }
        }
      }),
    );
  });
});
