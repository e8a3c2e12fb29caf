import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { PaymentAffinity } from '../../../src/environments/affinity.ts';
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

const onlySandbox = { ...shop, environments: ['sandbox'], onlyEnvironment: 'sandbox' };

const inSandbox: PaymentAffinity = { environment: 'sandbox', tenant: 'shop' };
const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };
const rivalsInProduction: PaymentAffinity = { environment: 'production', tenant: 'rival' };

describe('a new payment', () => {
  const rules = {
    'goes to the requested environment': [initiation({ named: 'production' }), 'sandbox', 'production'],
    'goes to the requested environment if the active one is unknown': [
      initiation({ named: 'production' }),
      undefined,
      'production',
    ],
    "goes to the client's only environment, whichever is active": [
      initiation({ client: onlySandbox }),
      'production',
      'sandbox',
    ],
    "goes to the client's only environment if the active one is unknown": [
      initiation({ client: onlySandbox }),
      undefined,
      'sandbox',
    ],
    'goes to the active environment': [initiation(), 'production', 'production'],
    'is refused if the client may not use the active environment': [
      initiation({ client: { ...shop, environments: ['sandbox', 'staging'] } }),
      'production',
      'ENVIRONMENT_FORBIDDEN',
    ],
    'is refused if the active environment is unknown': [initiation(), undefined, 'STATE_UNAVAILABLE'],
  } as const;
  for (const [title, [request, active, expected]] of Object.entries(rules)) {
    test(title, () =>
      assert.equal(
        routedTo(() => routeNewPayment(request, active)),
        expected,
      ),
    );
  }
});

describe('a request for a payment with a recorded affinity', () => {
  const rules = {
    'goes to the environment that created the payment': [statusRead(), [inProduction], 'production'],
    'goes there if that environment is requested': [
      cancellation({ named: 'production' }),
      [inProduction],
      'production',
    ],
    'is refused if another environment is requested': [
      statusRead({ named: 'sandbox' }),
      [inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    'is refused if the client may not use that environment': [
      statusRead({ client: onlySandbox }),
      [inProduction],
      'ENVIRONMENT_FORBIDDEN',
    ],
    'is refused if there are several environments and none is requested': [
      statusRead(),
      [inSandbox, inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    'is refused if there are several environments, even if the client may use only one': [
      statusRead({ client: onlySandbox }),
      [inSandbox, inProduction],
      'ENVIRONMENT_MISMATCH',
    ],
    'goes to the requested one of several environments': [
      cancellation({ named: 'production' }),
      [inSandbox, inProduction],
      'production',
    ],
    'ignores the affinities of other tenants': [statusRead(), [rivalsInProduction, inSandbox], 'sandbox'],
    'is refused if the payment belongs to another tenant': [
      statusRead(),
      [rivalsInProduction],
      'PAYMENT_UNKNOWN',
    ],
    'is refused if the payment belongs to another tenant and its environment is requested': [
      statusRead({ named: 'production' }),
      [rivalsInProduction],
      'PAYMENT_UNKNOWN',
    ],
    'is refused if another tenant owns the payment in the requested environment': [
      statusRead({ named: 'production' }),
      [rivalsInProduction, inSandbox],
      'ENVIRONMENT_MISMATCH',
    ],
  } as const;
  for (const [title, [request, homes, expected]] of Object.entries(rules)) {
    test(title, () =>
      assert.equal(
        routedTo(() => routeKnownPayment(request, homes)),
        expected,
      ),
    );
  }
});

describe('a request for a payment without a recorded affinity, with a single tenant', () => {
  for (const request of [statusRead, paymentRead]) {
    const { name } = request().operation;
    const choice = (options: Parameters<typeof request>[0], active: string | undefined) =>
      routedTo(() => routeUnknownPayment(request(options), active));

    test(`goes to the requested environment, else the client's only one, else the active one: ${name}`, () => {
      assert.equal(choice({ named: 'sandbox' }, 'production'), 'sandbox');
      assert.equal(choice({ client: onlySandbox }, 'production'), 'sandbox');
      assert.equal(choice({}, 'production'), 'production');
    });

    test(`is refused if the client may not use the active environment or it is unknown: ${name}`, () => {
      const client = { ...shop, environments: ['sandbox', 'staging'] };
      assert.equal(choice({ client }, 'production'), 'ENVIRONMENT_FORBIDDEN');
      assert.equal(choice({ client }, undefined), 'STATE_UNAVAILABLE');
    });
  }

  for (const request of [cancellation, authorisation]) {
    const { name } = request().operation;

    test(`goes to the requested environment and is refused without one, because it is a write: ${name}`, () => {
      const choice = (options: Parameters<typeof request>[0]) =>
        routedTo(() => routeUnknownPayment(request(options), 'production'));
      assert.equal(choice({ named: 'sandbox' }), 'sandbox');
      assert.equal(choice({}), 'ENVIRONMENT_MISMATCH');
      assert.equal(choice({ client: onlySandbox }), 'ENVIRONMENT_MISMATCH');
    });
  }
});

const names = ['sandbox', 'production', 'staging', 'drill'] as const;

const anyAffinities = fc.uniqueArray(
  fc.record({ environment: fc.constantFrom(...names), tenant: fc.constantFrom('shop', 'rival', 'third') }),
  { minLength: 1, selector: ({ environment, tenant }) => `${environment} ${tenant}` },
);
const anyActive = fc.option(fc.constantFrom(...names), { nil: undefined });

/** The listener accepts only an environment that the client may use. */
const anyRequestOptions = fc.subarray([...names], { minLength: 1 }).chain((environments) =>
  fc.record({
    client: fc.constant({
      ...shop,
      environments,
      onlyEnvironment: environments.length === 1 ? environments[0] : undefined,
    }),
    named: fc.option(fc.constantFrom(...environments), { nil: undefined }),
  }),
);
const anyPaymentRequest = fc.constantFrom(statusRead, paymentRead, cancellation, authorisation);

describe('the choice of an environment, for random affinities, headers and clients', () => {
  test('is always an environment that the client may use', () => {
    fc.assert(
      fc.property(
        anyAffinities,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        (affinities, active, options, request) => {
          const choices = [
            routedTo(() => routeNewPayment(initiation(options), active)),
            routedTo(() => routeKnownPayment(request(options), affinities)),
            routedTo(() => routeUnknownPayment(request(options), active)),
          ];
          for (const choice of choices) {
            assert.ok(
              choice in errorTable || options.client.environments.some((name) => name === choice),
              choice,
            );
          }
        },
      ),
    );
  });

  test('is never a guess: only the environment that created the payment for this tenant', () => {
    fc.assert(
      fc.property(anyAffinities, anyRequestOptions, anyPaymentRequest, (affinities, options, request) => {
        const choice = routedTo(() => routeKnownPayment(request(options), affinities));
        if (choice in errorTable) return;
        const own = affinities
          .filter(({ tenant }) => tenant === 'shop')
          .map(({ environment }) => environment);
        assert.ok(own.some((name) => name === choice));
        assert.ok(options.named === choice || own.length === 1);
      }),
    );
  });

  test('fails with the same error for a payment of another tenant and one that does not exist', async () => {
    const foreign = anyAffinities.map((all) => all.map((affinity) => ({ ...affinity, tenant: 'rival' })));
    const policy = fc.constantFrom('refuse', 'allow');
    await fc.assert(
      fc.asyncProperty(
        foreign,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        policy,
        async (affinities, active, options, request, _ifStateFails) => {
          const errors = await Promise.all(
            [affinities, []].map((known) => {
              const stage = chooseEnvironment(
                dependenciesFor({
                  environments: names,
                  tenants: 2,
                  active,
                  affinities: known,
                }),
              );
              return errorOf(() => stage(request(options), async () => bankResponse('unused')));
            }),
          );
          const [others, unknown] = errors.map(visibleParts);
          assert.deepEqual(others, unknown);
          assert.equal(unknown?.code, 'PAYMENT_UNKNOWN');
        },
      ),
    );
  });

  test('never fails with a message that names an environment or a tenant', () => {
    fc.assert(
      fc.property(
        anyAffinities,
        anyActive,
        anyRequestOptions,
        anyPaymentRequest,
        (affinities, active, options, request) => {
          const attempts = [
            () => routeNewPayment(initiation(options), active),
            () => routeKnownPayment(request(options), affinities),
            () => routeUnknownPayment(request(options), active),
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
