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

/** `production` was named `live` first. */
const identities = {
  ...namesAsIdentities,
  environmentIdOf: (name: string) => (name === 'production' ? 'live' : name),
};

describe('the tokens that are accepted', () => {
  test('are those of environments that receive notifications, by their ids', () => {
    assert.deepEqual(receivingEnvironmentIds(config, identities), ['live']);
  });
});
