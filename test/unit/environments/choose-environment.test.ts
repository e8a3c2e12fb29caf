import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { PaymentAffinity } from '../../../src/environments/affinity.ts';
import { chooseEnvironment, prefetchWithClaim } from '../../../src/environments/choose-environment.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { type Identities, namesAsIdentities } from '../../../src/request/identities.ts';
import type { NamedPayment, PisRequest, RoutedRequest } from '../../../src/request/messages.ts';
import { deadlines, dependenciesFor, withUnreachableState } from './dependencies.ts';
import {
  authorisation,
  bankResponse,
  cancellation,
  errorOf,
  initiation,
  paymentRead,
  rival,
  shop,
  statusRead,
} from './requests.ts';

const inProduction: PaymentAffinity = { environment: 'production', tenant: 'shop' };

/** The environment to which the stage sends a request. */
async function sentTo(
  dependencies: ReturnType<typeof dependenciesFor>,
  request: PisRequest,
): Promise<string> {
  const answer = await chooseEnvironment(dependencies)(request, async ({ environment }) =>
    bankResponse(environment.name),
  );
  return answer.environment;
}

const refusalOf = async (dependencies: ReturnType<typeof dependenciesFor>, request: PisRequest) =>
  (await errorOf(() => sentTo(dependencies, request))).code;

describe('the stage chooseEnvironment', () => {
  test('adds the environment to the request, sets its deadline, and changes nothing else', async () => {
    const request = statusRead();
    const before = { ...request };
    const passed: RoutedRequest[] = [];
    await chooseEnvironment(dependenciesFor({ affinities: [inProduction] }))(request, async (routed) => {
      passed.push(routed);
      return bankResponse(routed.environment.name);
    });
    const { environment, prefetched, bankIds, ...rest } =
      passed[0] ?? assert.fail('the request was not passed on');
    assert.equal(prefetched ?? bankIds, undefined);
    assert.equal(rest.deadlineAtMs, before.arrivedAtMs + deadlines.status);
    assert.equal(environment.origin, 'https://production.bank.example');
    assert.deepEqual({ ...rest, deadlineAtMs: before.deadlineAtMs }, before);
  });

  test('sends a new payment to the active environment, and other requests to the environment that created the payment', async () => {
    const dependencies = dependenciesFor({ active: 'sandbox', affinities: [inProduction] });
    assert.equal(await sentTo(dependencies, initiation()), 'sandbox');
    assert.equal(await sentTo(dependencies, cancellation()), 'production');
  });

  test('sends requests for a payment without a record to the only environment, after it has read the tenants again', async () => {
    const dependencies = dependenciesFor({ environments: ['bank'] });
    for (const request of [statusRead(), cancellation(), authorisation()]) {
      assert.equal(await sentTo(dependencies, request), 'bank');
      const renewedTo = (changes: Partial<Identities>) => ({
        ...request,
        identities: { ...namesAsIdentities, renew: async () => ({ ...namesAsIdentities, ...changes }) },
      });
      const otherTenants = renewedTo({ hasOtherTenants: true });
      assert.equal(await refusalOf(dependencies, otherTenants), 'PAYMENT_UNKNOWN');
      const otherEnvironments = renewedTo({ hasOtherEnvironments: true });
      if (request.operation.lane === 'write')
        assert.equal(await refusalOf(dependencies, otherEnvironments), 'ENVIRONMENT_MISMATCH');
    }
  });

  test('checks the owner of a payment if there is one environment and several tenants', async () => {
    const affinities = [{ environment: 'sandbox', tenant: 'shop' }];
    const dependencies = dependenciesFor({ environments: ['sandbox'], tenants: 2, affinities });
    assert.equal(await sentTo(dependencies, statusRead()), 'sandbox');
    assert.equal(await refusalOf(dependencies, statusRead({ client: rival })), 'PAYMENT_UNKNOWN');
  });

  test('refuses requests for a payment without affinity if there are several tenants, whatever environment is requested', async () => {
    const dependencies = dependenciesFor({ tenants: 2 });
    for (const named of [undefined, 'sandbox', 'production']) {
      for (const request of [statusRead, cancellation, authorisation]) {
        assert.equal(await refusalOf(dependencies, request({ named })), 'PAYMENT_UNKNOWN');
      }
    }
  });

  test('reads a payment without affinity in the active environment if there is one tenant, and changes it only in a requested one', async () => {
    const dependencies = dependenciesFor({ active: 'production' });
    assert.equal(await sentTo(dependencies, statusRead()), 'production');
    assert.equal(await refusalOf(dependencies, cancellation()), 'ENVIRONMENT_MISMATCH');
    assert.equal(await sentTo(dependencies, cancellation({ named: 'sandbox' })), 'sandbox');
  });

  test('refuses requests for a payment of another tenant, even if only one tenant is configured now', async () => {
    const dependencies = dependenciesFor({ affinities: [{ environment: 'sandbox', tenant: 'rival' }] });
    assert.equal(await refusalOf(dependencies, statusRead()), 'PAYMENT_UNKNOWN');
  });

  test('refuses requests for an environment that is no longer configured', async () => {
    const dependencies = dependenciesFor({
      environments: ['sandbox', 'staging'],
      active: 'production',
      affinities: [inProduction],
    });
    assert.equal(await refusalOf(dependencies, initiation()), 'STATE_UNAVAILABLE');
    assert.equal(await refusalOf(dependencies, statusRead()), 'STATE_UNAVAILABLE');
  });

  test('sets the environment of the request even if the request fails later', async () => {
    const stage = chooseEnvironment(dependenciesFor({ affinities: [inProduction] }));
    const request = statusRead();
    await errorOf(() =>
      stage(request, () => Promise.reject(new GatewayError('OUTCOME_UNKNOWN', 'no answer'))),
    );
    assert.equal(request.environment?.name, 'production');
  });

  test('does not change the environment of a request during a switch', async () => {
    const dependencies = dependenciesFor({ active: 'sandbox' });
    let active = 'sandbox';
    const known = () => ({ environment: active, version: 1 });
    const stage = chooseEnvironment({
      ...dependencies,
      active: { ...dependencies.active, known, read: async () => known() },
    });
    const answer = await stage(initiation(), async ({ environment }) => {
      active = 'production';
      return bankResponse(environment.name);
    });
    assert.equal(answer.environment, 'sandbox');
  });
});

describe('the cached status that chooseEnvironment reads in advance', () => {
  const rivals: PaymentAffinity = { environment: 'production', tenant: 'rival' };

  /** What the stage prefetches, and what it passes on. */
  async function prefetchedFor(
    { recorded, lastSeen }: Readonly<Record<'recorded' | 'lastSeen', readonly PaymentAffinity[]>>,
    request = statusRead(),
  ) {
    const dependencies = dependenciesFor({ tenants: 2 });
    const environmentIds: string[] = [];
    const document = {};
    let isAffinityRead = false;
    const stage = chooseEnvironment({
      ...dependencies,
      affinity: {
        ...dependencies.affinity,
        lastSeen: () => lastSeen,
        async environmentsOf() {
          await setImmediate();
          isAffinityRead = true;
          return recorded;
        },
      },
      prefetchStatus(_request, environmentId) {
        assert.equal(isAffinityRead, false, 'both are read in one tick');
        environmentIds.push(environmentId);
        return document;
      },
    });
    const passed: unknown[] = [];
    const response = stage(request, async ({ environment, prefetched }) => {
      passed.push([environment.name, prefetched === document]);
      return bankResponse(environment.name);
    });
    const error = await response.then(
      () => undefined,
      ({ code }) => code,
    );
    return { environmentIds, passed, error };
  }

  test('is that of the environment where the instance last saw the payment', async () => {
    assert.deepEqual(await prefetchedFor({ recorded: [inProduction], lastSeen: [rivals, inProduction] }), {
      environmentIds: ['production'],
      passed: [['production', true]],
      error: undefined,
    });
  });

  test('does not change the environment that the affinity decides', async () => {
    const { environmentIds, passed } = await prefetchedFor({
      recorded: [{ environment: 'sandbox', tenant: 'shop' }],
      lastSeen: [inProduction],
    });
    assert.deepEqual([environmentIds, passed], [['production'], [['sandbox', true]]]);
  });

  test('is not read for a payment that the instance has not seen, or has seen only for another tenant', async () => {
    for (const lastSeen of [[], [rivals]]) {
      const { environmentIds, passed } = await prefetchedFor({ recorded: [inProduction], lastSeen });
      assert.deepEqual([environmentIds, passed], [[], [['production', false]]]);
    }
  });

  test('is not passed on if the payment belongs to another tenant', async () => {
    const result = await prefetchedFor({ recorded: [rivals], lastSeen: [inProduction] });
    assert.deepEqual([result.passed, result.error], [[], 'PAYMENT_UNKNOWN']);
  });
});

describe('the stage prefetchWithClaim', () => {
  /** Runs both stages; the claim of the X-Request-ID lies between them. @param claimed the environment that it returns */
  async function runBoth(
    dependencies: ReturnType<typeof dependenciesFor>,
    request: PisRequest,
    claimed?: string,
  ) {
    let reads = 0;
    const read = () => {
      reads += 1;
      return dependencies.active.read();
    };
    const counting = { ...dependencies, active: { ...dependencies.active, read } };
    const response = await prefetchWithClaim(counting)(request, async (prefetched) => {
      prefetched.onClaim?.(prefetched);
      prefetched.activeEnvironment = claimed;
      return chooseEnvironment(counting)(prefetched, async ({ environment }) =>
        bankResponse(environment.name),
      );
    });
    return { environment: response.environment, reads };
  }

  test('leaves it to the claim which environment is active: this instance may not know of a switch yet', async () => {
    const result = await runBoth(dependenciesFor({ active: 'sandbox' }), initiation(), 'production');
    assert.deepEqual(result, { environment: 'production', reads: 0 });
  });

  test('is followed by a read of the active environment if the database was new at the claim', async () => {
    const result = await runBoth(dependenciesFor({ active: 'production' }), initiation());
    assert.deepEqual(result, { environment: 'production', reads: 1 });
  });

  test('reads nothing for other requests', async () => {
    const result = await runBoth(dependenciesFor({ affinities: [inProduction] }), statusRead());
    assert.deepEqual(result, { environment: 'production', reads: 0 });
  });

  test('lets chooseEnvironment refuse a new payment if the read fails', async () => {
    const dependencies = withUnreachableState(dependenciesFor());
    assert.equal((await errorOf(() => runBoth(dependencies, initiation()))).code, 'STATE_UNAVAILABLE');
  });
});

describe('the permit that is requested in advance', () => {
  /** The environments for which the stages request a permit until the claim, or the affinity, is known. */
  async function permitsFor(request: PisRequest, options: Parameters<typeof dependenciesFor>[0] = {}) {
    const requested: string[] = [];
    const dependencies = dependenciesFor(options);
    const affinities = Promise.withResolvers<readonly PaymentAffinity[]>();
    const stages = {
      ...dependencies,
      affinity: {
        ...dependencies.affinity,
        lastSeen: () => options.affinities ?? [],
        environmentsOf: () => affinities.promise,
      },
      prefetchPermit: (_request: PisRequest, environment: string) => void requested.push(environment),
    };
    const response = prefetchWithClaim(stages)(request, async (claiming) => {
      if (claiming.operation.lane === 'write') claiming.onClaim?.(claiming);
      return chooseEnvironment(stages)(claiming, async ({ environment }) => bankResponse(environment.name));
    });
    const outcome = response.catch(() => {});
    await setImmediate();
    const before = [...requested];
    affinities.resolve(options.affinities ?? []);
    await outcome;
    assert.deepEqual(requested, before, 'nothing is requested later');
    return before;
  }

  for (const [name, request, expected] of [
    ['the active environment for a new payment', initiation(), 'sandbox'],
    ['the requested environment for a new payment', initiation({ named: 'production' }), 'production'],
    [
      'the only environment of the client for a new payment',
      initiation({ client: { ...shop, environments: ['production'], onlyEnvironment: 'production' } }),
      'production',
    ],
  ] as const)
    test(`is for ${name}`, async () => {
      assert.deepEqual(await permitsFor(request), [expected]);
    });

  test('is for the environment where the instance last saw the payment', async () => {
    for (const request of [paymentRead(), cancellation(), authorisation()])
      assert.deepEqual(await permitsFor(request, { affinities: [inProduction] }), ['production']);
  });

  test('is not requested for a status read, or if the environment of the payment is not known', async () => {
    assert.deepEqual(await permitsFor(statusRead(), { affinities: [inProduction] }), []);
    assert.deepEqual(await permitsFor(paymentRead()), []);
    const foreign = { affinities: [{ environment: 'production', tenant: 'rival' }] };
    assert.deepEqual(await permitsFor(paymentRead(), foreign), []);
    assert.deepEqual(await permitsFor(initiation(), { active: undefined }), []);
  });
});

describe('the stage chooseEnvironment while the quota is being checked', () => {
  for (const [name, options] of [
    ['two environments', { affinities: [inProduction] }],
    ['one environment', { environments: ['production'] }],
  ] as const) {
    const startRead = (request: PisRequest) => {
      const quota = Promise.withResolvers<void>();
      const [passed, prefetched]: [string[], string[]] = [[], []];
      const dependencies = dependenciesFor(options);
      const affinity = { ...dependencies.affinity, lastSeen: () => [inProduction] };
      const prefetchStatus = () => void prefetched.push('status');
      const prefetchPermit = () => void prefetched.push('permit');
      const stage = chooseEnvironment({ ...dependencies, affinity, prefetchStatus, prefetchPermit });
      const response = stage(Object.assign(request, { quota: quota.promise }), async ({ environment }) => {
        passed.push(environment.name);
        return bankResponse(environment.name);
      });
      return { quota, passed, prefetched, response };
    };

    test(`prefetches, and passes the request on when the quota has admitted it: ${name}`, async () => {
      for (const [request, expected] of [
        [statusRead(), ['status']],
        [paymentRead(), ['status', 'permit']], // the status cache decides that it reads no status
      ] as const) {
        const { quota, passed, prefetched, response } = startRead(request);
        await setImmediate();
        assert.deepEqual([passed, prefetched], [[], expected]);
        quota.resolve();
        assert.equal((await response).environment, 'production');
        assert.equal(request.quota, undefined);
      }
    });

    test(`does not pass the request on if the quota is used up: ${name}`, async () => {
      const { quota, passed, response } = startRead(statusRead());
      quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
      assert.equal((await errorOf(() => response)).code, 'QUOTA_EXCEEDED');
      assert.deepEqual(passed, []);
    });
  }

  test('fails with QUOTA_EXCEEDED if the quota is used up and the affinity cannot be read', async () => {
    const stage = chooseEnvironment(withUnreachableState(dependenciesFor()));
    const quota = Promise.withResolvers<void>();
    const response = stage(Object.assign(statusRead(), { quota: quota.promise }), () => assert.fail());
    await setImmediate(); // an unhandled rejection fails the test
    quota.reject(new GatewayError('QUOTA_EXCEEDED', 'used up'));
    assert.equal((await errorOf(() => response)).code, 'QUOTA_EXCEEDED');
  });
});

describe('the stage chooseEnvironment while the state is unavailable', () => {
  const dependencies = withUnreachableState(dependenciesFor({ active: 'production' }));

  test('refuses new payments and requests for payments', async () => {
    for (const request of [
      initiation(),
      initiation({ named: 'sandbox' }),
      statusRead(),
      cancellation({ named: 'sandbox' }),
    ]) {
      assert.equal(await refusalOf(dependencies, request), 'STATE_UNAVAILABLE');
    }
  });

  test('refuses new payments if the active environment is unknown', async () => {
    const never = withUnreachableState(dependenciesFor({ active: undefined }));
    assert.equal(await refusalOf(never, initiation()), 'STATE_UNAVAILABLE');
  });

  test('refuses requests for payments if there are several tenants, whichever environment is named', async () => {
    const several = { ...dependencies, tenants: 2 };
    assert.equal(await refusalOf(several, statusRead({ named: 'sandbox' })), 'STATE_UNAVAILABLE');
  });
});

describe('the payment that chooseEnvironment names to the ledger', () => {
  /** What the stage names from the response to a request, and what it caches when the ledger has stored it. */
  async function namedFrom(request: PisRequest, body: unknown, status = 201) {
    const named: NamedPayment[] = [];
    const cached: unknown[] = [];
    const dependencies = dependenciesFor({ active: 'production', affinities: [inProduction] });
    const affinity = {
      ...dependencies.affinity,
      cacheStored: (...stored: readonly unknown[]) => void cached.push(stored),
    };
    const response = bankResponse('production', body, status);
    const writeAheadMark = {
      markSending: async () => ({ untilMs: 0, untilWallMs: 0 }),
      onDeadline() {},
      lateAnswerMs: 0,
      followsReleasedAttempt: false,
      namePayment: (payment: NamedPayment) => void named.push(payment),
    };
    const stage = chooseEnvironment({ ...dependencies, affinity });
    assert.equal(await stage({ ...request, writeAheadMark }, async () => response), response);
    assert.deepEqual(cached, [], 'it is not stored yet');
    for (const { onStored } of named) onStored?.();
    return { created: named.map((payment) => payment.created), cached };
  }

  test('is that of the response, with the environment and the tenant of the request', async () => {
    for (const status of [200, 201, 202, 303, 400, 401, 409, 429, 500]) {
      const { created, cached } = await namedFrom(initiation({ client: shop }), { paymentId: 'p-1' }, status);
      const initiatedAs = 'payments/sepa-credit-transfers';
      assert.deepEqual(created, [{ paymentId: 'p-1', initiatedAs, bankIds: undefined, isPermanent: false }]);
      assert.deepEqual(cached, [['p-1', { ...inProduction, initiatedAs }]]);
    }
  });

  test('is permanent if it is a standing order', async () => {
    const { created } = await namedFrom(initiation({}, 'periodic-payments'), { paymentId: 'p-1' });
    assert.deepEqual(
      created.map((one) => one?.isPermanent),
      [true],
    );
  });

  test('is absent if the response names no payment, and for other operations', async () => {
    for (const status of [200, 202, 400, 409, 500]) {
      const { created, cached } = await namedFrom(initiation(), { transactionStatus: 'RCVD' }, status);
      assert.deepEqual([created.filter(Boolean), cached], [[], []]);
    }
    for (const request of [statusRead(), authorisation(), cancellation()])
      assert.deepEqual((await namedFrom(request, { paymentId: 'p-1' })).created, []);
  });
});
