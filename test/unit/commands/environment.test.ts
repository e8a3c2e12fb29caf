import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { showEnvironments, useEnvironment } from '../../../src/commands/environment.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

const environments = [
  {
    name: 'sandbox',
    baseUrl: 'https://sandbox.bank.example',
    standardVersion: '1.3.11',
    origin: 'unknown to the command',
  },
  { name: 'production', baseUrl: 'https://bank.example/psd2', standardVersion: '1.3.6' },
];
const options = { environment: 'production', reason: 'go-live', confirm: 'production', force: false };
const steps = [
  { step: 'tcp', ok: true, detail: '192.0.2.1:443' },
  { step: 'certificate', ok: false, detail: 'CERT_HAS_EXPIRED' },
];

describe('penstock environment', () => {
  test('shows one line for each environment, and marks the active one', async () => {
    const { call, calls } = fakeAdminClient(200, { active: 'production', version: 2, environments });
    assert.deepEqual(await showEnvironments(call), {
      lines: [
        '  sandbox      1.3.11   https://sandbox.bank.example',
        '* production   1.3.6    https://bank.example/psd2',
      ],
      data: { active: 'production', version: 2, environments },
      exitCode: 0,
    });
    assert.deepEqual(calls, [['GET', '/environments']]);
  });

  test('marks none while the active environment is unknown', async () => {
    const { call } = fakeAdminClient(200, { active: null, version: null, environments });
    const { lines } = await showEnvironments(call);
    assert.ok(lines.every((line) => line.startsWith('  ')));
  });

  test('prints the error of the gateway if it refuses', async () => {
    const { call } = fakeAdminClient(401, { error: 'no' });
    await assert.rejects(showEnvironments(call), {
      message: /^The gateway does not know this operator token/,
      exitCode: 77,
    });
  });
});

describe('penstock environment use', () => {
  test('requests the switch, and prints the steps of the pre-flight', async () => {
    const body = {
      active: 'production',
      from: 'sandbox',
      version: 2,
      preflight: { ok: true, steps: steps.slice(0, 1) },
    };
    const { call, calls } = fakeAdminClient(200, body);
    assert.deepEqual(await useEnvironment(call, options), {
      lines: ['ok     tcp          192.0.2.1:443', 'New payments go to production now.'],
      data: body,
      exitCode: 0,
    });
    assert.deepEqual(calls, [['PUT', '/environments/active', options]]);
  });

  test('prints the remark of a step below it', async () => {
    const remark = 'The bank does not know probePath.';
    const answer = { step: 'answer', ok: true, detail: 'status 404', remark };
    const { call } = fakeAdminClient(200, { preflight: { ok: true, steps: [answer] } });
    assert.deepEqual((await useEnvironment(call, options)).lines.slice(0, 2), [
      'ok     answer       status 404',
      `                    ${remark}`,
    ]);
  });

  test('does not send other options of the command line', async () => {
    const { call, calls } = fakeAdminClient(200, {});
    await useEnvironment(call, Object.assign({ config: 'penstock.yaml' }, options));
    assert.deepEqual(calls, [['PUT', '/environments/active', options]]);
  });

  test('fails and prints the steps and the reason if the switch is refused', async () => {
    const preflight = { ok: false, steps };
    const { call } = fakeAdminClient(409, { error: 'Not switched: the pre-flight failed.', preflight });
    await assert.rejects(useEnvironment(call, options), {
      message: 'Not switched: the pre-flight failed.',
      lines: ['ok     tcp          192.0.2.1:443', 'FAILED certificate  CERT_HAS_EXPIRED'],
      data: { preflight },
      exitCode: 1,
    });
  });

  test('fails if the switch is refused without a pre-flight', async () => {
    const message = 'The shared state cannot be reached.';
    const { call } = fakeAdminClient(503, { error: message });
    await assert.rejects(useEnvironment(call, options), { message, exitCode: 69 });
  });
});
