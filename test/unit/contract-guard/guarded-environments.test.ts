import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGuardedEnvironments } from '../../../src/contract-guard/guarded-environments.ts';
import { configOf, type Sections } from '../../kit/gateway.ts';

/** Four environments with the same version, of which the gateway takes different headers. */
const sections: Sections = {
  environments: {
    active: 'forward',
    forward: { baseUrl: 'https://one.example', standardVersion: '1.3.11' },
    same: { baseUrl: 'https://two.example', standardVersion: '1.3.11' },
    off: { baseUrl: 'https://three.example', standardVersion: '1.3.11', bankNotifications: 'off' },
    receive: {
      baseUrl: 'https://four.example',
      standardVersion: '1.3.11',
      bankNotifications: 'receive',
      contract: { requireHeaders: { initiatePayment: ['TPP-Notification-URI', 'TPP-Redirect-URI'] } },
    },
  },
  notifications: { publicUrl: 'https://gateway.example/notifications', listen: { port: 9999 } },
};

const guardedOf = (config: Sections, hasWebhooks = (_client: string) => false) =>
  createGuardedEnvironments(configOf(config).environments.all, hasWebhooks, () => assert.fail());

test('environments have the same contract only if the gateway takes the same headers there', () => {
  const { all } = guardedOf(sections);
  const hashOf = (wanted: string) => all.find(({ name }) => name === wanted)?.own.hash;
  assert.equal(hashOf('forward'), hashOf('same'));
  assert.notEqual(hashOf('forward'), hashOf('off'));
  assert.equal(hashOf('off'), hashOf('receive'));
  assert.deepEqual(
    all.map(({ judges }) => judges.length),
    [2, 2, 2, 2],
  );
});

test('the gateway consumes the notification headers of clients with webhooks in every environment', () => {
  for (const environment of guardedOf(sections, (client) => client === 'shop').all) {
    assert.deepEqual(environment.consumedHeadersOf('shop'), ['notifications']);
    assert.deepEqual(environment.consumedHeadersOf('other'), []);
  }
});

test('required headers that the gateway writes itself are not demanded', () => {
  const receive = guardedOf(sections).of('receive');
  assert.equal(receive?.missingHeader('initiatePayment', []), 'TPP-Redirect-URI');
  const redirect = ['TPP-Redirect-URI', 'https://tpp.example'] as const;
  assert.equal(receive?.missingHeader('initiatePayment', [redirect]), undefined);
});
