import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { resolveIdentities } from '../../../src/identities/resolve-identities.ts';
import { receivingEnvironmentIds } from '../../../src/notifications/bank-notification-modes.ts';
import { configOf } from '../../kit/gateway.ts';

const banks = { production: 'https://bank.example', sandbox: 'https://sandbox.example' };

const config = configOf({
  environments: {
    active: 'production',
    production: { baseUrl: banks.production, bankNotifications: 'receive' },
    sandbox: { baseUrl: banks.sandbox },
  },
  notifications: { publicUrl: 'https://tpp.example', listen: { port: 0 } },
});

const identities = resolveIdentities(
  {
    v: 1,
    version: 1,
    earlierRelease: false,
    tenants: [],
    environments: [
      { ids: ['production', 'production@2'], name: 'production', banks: [banks.production] },
      { ids: ['sandbox'], name: 'sandbox', banks: [banks.sandbox] },
      { ids: ['retired'], name: 'retired', banks: ['https://retired.example'] },
    ],
  },
  {
    tenants: [],
    retired: [],
    environments: Object.entries(banks).map(([name, bank]) => ({
      name,
      bank,
      isShared: false,
      movedFrom: [],
    })),
  },
);

describe('the tokens that are accepted', () => {
  test('are those of environments that receive notifications, and of others that were merged into them', () => {
    assert.deepEqual(receivingEnvironmentIds(config, identities), ['production', 'production@2']);
  });
});
