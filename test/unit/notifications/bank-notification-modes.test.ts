import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { receivingEnvironmentIds } from '../../../src/notifications/bank-notification-modes.ts';
import { namesAsIdentities } from '../../../src/request/identities.ts';
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

/** The environment was renamed. */
const identities = {
  ...namesAsIdentities,
  environmentIdOf: (name: string) => (name === 'production' ? 'bank-a' : name),
};

describe('the tokens that are accepted', () => {
  test('are those of environments that receive notifications', () => {
    assert.deepEqual(receivingEnvironmentIds(config, identities), ['bank-a']);
  });
});
