import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prepareContract } from '../../../src/contract/contract.ts';
import { createGuardedEnvironments } from '../../../src/contract-guard/guarded-environments.ts';
import { configOf, type Sections } from '../../kit/gateway.ts';

/** Environments with the same version, of which the gateway takes different headers, and one that requires some. */
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
    },
    strict: {
      baseUrl: 'https://five.example',
      standardVersion: '1.3.11',
      bankNotifications: 'receive',
      contract: { requireHeaders: { initiatePayment: ['TPP-Notification-URI', 'TPP-Redirect-URI'] } },
    },
  },
  notifications: { publicUrl: 'https://gateway.example/notifications', listen: { port: 9999 } },
};

const guardedOf = (config: Sections, hasWebhooks = (_client: string) => false) =>
  createGuardedEnvironments(configOf(config).environments.all, hasWebhooks, () => assert.fail());

test('environments have the same contract only if the gateway takes, and the bank requires, the same headers there', () => {
  const { all } = guardedOf(sections);
  const hashOf = (wanted: string) => all.find(({ name }) => name === wanted)?.own.hash;
  assert.equal(hashOf('forward'), hashOf('same'));
  assert.notEqual(hashOf('forward'), hashOf('off'));
  assert.equal(hashOf('off'), hashOf('receive'));
  assert.notEqual(hashOf('receive'), hashOf('strict'));
  assert.deepEqual(
    all.map(({ judges }) => judges.length),
    [3, 3, 3, 3, 3],
  );
});

test('the gateway consumes the notification headers of clients with webhooks in every environment', () => {
  for (const environment of guardedOf(sections, (client) => client === 'shop').all) {
    assert.deepEqual(environment.consumedHeadersOf('shop'), ['notifications']);
    assert.deepEqual(environment.consumedHeadersOf('other'), []);
  }
});

test('required headers that the gateway writes itself are not demanded', () => {
  const strict = guardedOf(sections).of('strict');
  assert.equal(strict?.missingHeader('initiatePayment', []), 'TPP-Redirect-URI');
  const redirect = ['TPP-Redirect-URI', 'https://tpp.example'] as const;
  assert.equal(strict?.missingHeader('initiatePayment', [redirect]), undefined);
  assert.equal(strict?.missingHeader('cancelPayment', []), undefined);
});

test('contracts that cannot be compiled are compiled again ten seconds later', async () => {
  const clock = { nowMs: 0 };
  const failures: unknown[] = [];
  let attempts = 0;
  const settings = configOf({
    environments: {
      active: 'sandbox',
      sandbox: {
        baseUrl: 'https://bank.example',
        standardVersion: '1.3.11',
        contract: { requests: 'enforce' },
      },
    },
  }).environments.all;
  const guarded = createGuardedEnvironments(
    settings,
    () => false,
    (cause) => void failures.push(cause),
    {
      now: () => clock.nowMs,
      async compile(options) {
        attempts += 1;
        if (attempts === 1) throw new Error('too many open files');
        return prepareContract(options);
      },
    },
  );
  const sandbox = guarded.of('sandbox') ?? assert.fail();
  await assert.rejects(guarded.prepareEnforced(), /cannot be compiled/);
  assert.equal(sandbox.isUnusable(), true);
  clock.nowMs = 9_999;
  await sandbox.prepare();
  assert.deepEqual([attempts, sandbox.own.contract], [1, undefined]);
  clock.nowMs = 10_000;
  await guarded.prepareEnforced();
  assert.equal(sandbox.isUnusable(), false);
  assert.ok(sandbox.own.contract);
  assert.equal(failures.length, 1);
});
