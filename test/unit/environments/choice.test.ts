import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { forForgottenPayment, forKnownPayment, forNewPayment } from '../../../src/environments/choice.ts';
import type { Home } from '../../../src/environments/payment-record.ts';
import {
  authorisation,
  cancellation,
  goesTo,
  initiation,
  paymentRead,
  shop,
  statusRead,
} from './requests.ts';

const onlySandbox = { ...shop, environments: ['sandbox'] };

const inSandbox: Home = { environment: 'sandbox', tenant: 'shop' };
const inProduction: Home = { environment: 'production', tenant: 'shop' };
const rivalsInProduction: Home = { environment: 'production', tenant: 'rival' };

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
        goesTo(() => forNewPayment(request, active)),
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
        goesTo(() => forKnownPayment(request, homes)),
        expected,
      ),
    );
  }
});

describe('a request on a payment that nobody remembers, where it can only be that of one tenant', () => {
  for (const request of [statusRead, paymentRead]) {
    const { name } = request().operation;
    const choice = (asked: Parameters<typeof request>[0], active: string | undefined) =>
      goesTo(() => forForgottenPayment(request(asked), active));

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
        goesTo(() => forForgottenPayment(request(asked), 'production'));
      assert.equal(choice({ named: 'sandbox' }), 'sandbox');
      assert.equal(choice({}), 'ENVIRONMENT_MISMATCH');
      assert.equal(choice({ client: onlySandbox }), 'ENVIRONMENT_MISMATCH');
    });
  }
});
