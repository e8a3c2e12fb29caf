import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { PaymentAffinity } from '../../../src/environments/affinity-record.ts';
import { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import {
  routeKnownPayment,
  routeNewPayment,
  routeUnknownPayment,
} from '../../../src/environments/routing-rules.ts';
import { errorTable, GatewayError } from '../../../src/request/errors.ts';
import { dependenciesFor } from './dependencies.ts';
import {
  authorisation,
  bankResponse,
  cancellation,
  errorOf,
  initiation,
  paymentRead,
  routedTo,
  shop,
  statusRead,
  visibleParts,
} from './requests.ts';

const onlySandbox = { ...shop, environments: ['sandbox'] };

const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };
const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };
const rivalsInProduction: PaymentAffinity = { environment: 'production', tenant: 'rival' };

describe('a new payment goes', () => {
  const promises = {
    'to the environment that is named': [initiation({ named: 'production' }), 'sandbox', 'production'],
    'to the one that is named, though nobody knows which is active': [
      initiation({ named: 'production' }),
      undefined,
      'production',
    ],
    "to the client's only one, whichever is active": [
      initiation({ client: onlySandbox }),
      'production',
      'sandbox',
    ],
    "to the client's only one, though nobody knows which is active": [
      initiation({ client: onlySandbox }),
      undefined,
      'sandbox',
    ],
    'to the active one': [initiation(), 'production', 'production'],
    'nowhere if the active one is not among those of the client': [
      initiation({ client: { ...shop, environments: ['sandbox', 'staging'] } }),
      'production',
      'ENVIRONMENT_FORBIDDEN',
    ],
    'nowhere if nobody knows which is active': [initiation(), undefined, 'STATE_UNAVAILABLE'],
  } as const;
  for (const [title, [request, active, expected]] of Object.entries(promises)) {
    test(title, () =>
      assert.equal(
        routedTo(() => routeNewPayment(request, active)),
        expected,
      ),
    );
  }
});

describe('a request on a payment that is remembered goes', () => {
  const promises = {
    'where the payment lives': [statusRead(), [inProduction], 'production'],
    'there if that one is named, too': [cancellation({ named: 'production' }), [inProduction], 'production'],
    'nowhere if another one is named': [
      statusRead({ named: 'sandbox' }),
      [inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    'nowhere if the client may not use the one where it lives': [
      statusRead({ client: onlySandbox }),
      [inProduction],
      'ENVIRONMENT_FORBIDDEN',
    ],
    'nowhere if it lives in several and none is named': [
      statusRead(),
      [inSandbox, inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    "nowhere if it lives in several, not even to the client's only one": [
      statusRead({ client: onlySandbox }),
      [inSandbox, inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    'to the named one of several': [
      cancellation({ named: 'production' }),
      [inSandbox, inProduction],
      'production',
    ],
    "where it lives for this tenant, whatever other tenants' homes there are": [
      statusRead(),
      [rivalsInProduction, inSandbox],
      'sandbox',
    ],
    "nowhere if it is another tenant's": [statusRead(), [rivalsInProduction], 'PAYMENT_UNKNOWN'],
    "nowhere if it is another tenant's, even if its environment is named": [
      statusRead({ named: 'production' }),
      [rivalsInProduction],
      'PAYMENT_UNKNOWN',
    ],
    'nowhere if the named one knows it only as that of another tenant': [
      statusRead({ named: 'production' }),
      [rivalsInProduction, inSandbox],
      'ENVIRONMENT_MISMATCH',
    ],
  } as const;
  for (const [title, [request, homes, expected]] of Object.entries(promises)) {
    test(title, () =>
      assert.equal(
        routedTo(() => routeKnownPayment(request, homes)),
        expected,
      ),
    );
  }
});

describe('a request on a payment that nobody remembers, where it can only be that of one tenant', () => {
  for (const request of [statusRead, paymentRead]) {
    const { name } = request().operation;
    const choice = (asked: Parameters<typeof request>[0], active: string | undefined) =>
      routedTo(() => routeUnknownPayment(request(asked), active));

    test(`${name} goes to the named environment, else to the client's only one, else to the active one`, () => {
      assert.equal(choice({ named: 'sandbox' }, 'production'), 'sandbox');
      assert.equal(choice({ client: onlySandbox }, 'production'), 'sandbox');
      assert.equal(choice({}, 'production'), 'production');
    });

    test(`${name} goes nowhere if the client may not use the active one, or nobody knows it`, () => {
      const client = { ...shop, environments: ['sandbox', 'staging'] };
      assert.equal(choice({ client }, 'production'), 'ENVIRONMENT_FORBIDDEN');
      assert.equal(choice({ client }, undefined), 'STATE_UNAVAILABLE');
    });
  }

  for (const request of [cancellation, authorisation]) {
    const { name } = request().operation;

    test(`${name} goes to the named environment, else nowhere: what changes a payment is never sent on a guess`, () => {
      const choice = (asked: Parameters<typeof request>[0]) =>
        routedTo(() => routeUnknownPayment(request(asked), 'production'));
      assert.equal(choice({ named: 'sandbox' }), 'sandbox');
      assert.equal(choice({}), 'ENVIRONMENT_MISMATCH');
      assert.equal(choice({ client: onlySandbox }), 'ENVIRONMENT_MISMATCH');
    });
  }
});

// MERGED HEADER (rewrite or remove):
/* Whatever is remembered, asked for and allowed: what may never happen when an environment is chosen. */

const names = ['sandbox', 'production', 'staging', 'drill'] as const;

const anyAffinities = fc.uniqueArray(
  fc.record({ environment: fc.constantFrom(...names), tenant: fc.constantFrom('shop', 'rival', 'third') }),
  { minLength: 1, selector: ({ environment, tenant }) => `${environment} ${tenant}` },
);
const anyActive = fc.option(fc.constantFrom(...names), { nil: undefined });

/** The door lets through only a name that the client may use. */
const anyRequestOptions = fc.subarray([...names], { minLength: 1 }).chain((environments) =>
  fc.record({
    client: fc.constant({ ...shop, environments }),
    named: fc.option(fc.constantFrom(...environments), { nil: undefined }),
  }),
);
const anyPaymentRequest = fc.constantFrom(statusRead, paymentRead, cancellation, authorisation);

describe('whatever the homes, the header and the client', () => {
  test('the chosen environment is one that the client may use', () => {
    fc.assert(
      fc.property(
        anyAffinities,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        (remembered, now, question, request) => {
          const choices = [
            routedTo(() => routeNewPayment(initiation(question), now)),
            routedTo(() => routeKnownPayment(request(question), remembered)),
            routedTo(() => routeUnknownPayment(request(question), now)),
          ];
          for (const choice of choices) {
            assert.ok(
              choice in errorTable || question.client.environments.some((name) => name === choice),
              choice,
            );
          }
        },
      ),
    );
  });

  test('a remembered payment is looked for only where it lives for this tenant, and never by a guess', () => {
    fc.assert(
      fc.property(anyAffinities, anyRequestOptions, anyPaymentRequest, (remembered, question, request) => {
        const choice = routedTo(() => routeKnownPayment(request(question), remembered));
        if (choice in errorTable) return;
        const own = remembered
          .filter(({ tenant }) => tenant === 'shop')
          .map(({ environment }) => environment);
        assert.ok(own.some((name) => name === choice));
        assert.ok(question.named === choice || own.length === 1);
      }),
    );
  });

  test('a payment of another tenant looks exactly like one that does not exist, and nothing is sent for either', async () => {
    const foreign = anyAffinities.map((all) => all.map((home) => ({ ...home, tenant: 'rival' })));
    const policy = fc.constantFrom('refuse', 'allow');
    await fc.assert(
      fc.asyncProperty(
        foreign,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        policy,
        async (remembered, now, question, request, ifStateFails) => {
          const answers = await Promise.all(
            [remembered, []].map((known) => {
              const stage = chooseEnvironment(
                dependenciesFor({
                  environments: names,
                  tenants: 2,
                  active: now,
                  affinities: known,
                  ifStateFails,
                }),
              );
              return errorOf(() => stage(request(question), async () => bankResponse('must not be asked')));
            }),
          );
          const [others, unknown] = answers.map(visibleParts);
          assert.deepEqual(others, unknown);
          assert.equal(unknown?.code, 'PAYMENT_UNKNOWN');
        },
      ),
    );
  });

  test('an error of the choice names no environment and no tenant', () => {
    fc.assert(
      fc.property(
        anyAffinities,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        (remembered, now, question, request) => {
          const attempts = [
            () => routeNewPayment(initiation(question), now),
            () => routeKnownPayment(request(question), remembered),
            () => routeUnknownPayment(request(question), now),
          ];
          for (const attempt of attempts) {
            try {
              attempt();
            } catch (thrown) {
              assert.ok(thrown instanceof GatewayError);
              assert.doesNotMatch(thrown.message, /sandbox|production|staging|drill|shop|rival|third/);
            }
          }
        },
      ),
    );
  });
});
