/**
 * Webhooks and waiting reads at the interfaces of real banks, which refuse reads without `Date`, a portal key, a BIC, a token of their
 * own or the address of the payer: simulated by the profiles of examples/banks, with the environments of config/banks.
 */

import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { readBankProfile } from '../../src/commands/bank-profile.ts';
import { profileSchema } from '../../src/simulated-bank/profile.ts';
import { createSimulatedBank } from '../../src/simulated-bank/server.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGateway } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { untilListening } from '../kit/status-listeners.ts';
import { startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { startWebhookReceiver } from '../kit/webhook-receiver.ts';
import { until } from '../kit/within.ts';

const apiKey: Field = ['X-API-Key', 'key-of-the-shop'];
const payerAddress: Field = ['PSU-IP-Address', '192.168.8.78'];
const oldDate: Field = ['Date', 'Mon, 23 Nov 2026 10:00:00 GMT'];

/** What the TPP sends with every request, beside `PSU-IP-Address`. */
const banks: Readonly<Record<string, readonly Field[]>> = {
  'deutsche-bank': [oldDate],
  'cbi-globe': [oldDate],
  bankdata: [],
  sparda: [['X-BIC', 'GENODEF1S08']],
  'santander-consumer': [['Authorization', 'Bearer 1']],
  dkb: [['PSD2-AUTHORIZATION', 'Bearer 1']],
  handelsbanken: [
    ['TPP-Transaction-ID', '6f0bd9ff-2b4f-4f40-9a3e-6b1f3d4c1f55'],
    ['TPP-Request-ID', '0c0f1d0e-83a4-4d0c-8d1a-2f7a5a0e3c11'],
  ],
  swedbank: [oldDate, ['PSU-User-Agent', 'test']],
};

/** Polls several times per second. */
const eager = { statusCache: { pendingTtl: '200ms', pendingTtlMax: '200ms' } };

async function startAll(t: TestContext, environment: object, sections: object = {}) {
  const receiver = await startWebhookReceiver(t);
  const folder = temporaryFolder(t);
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, `whsec_${randomBytes(32).toString('base64')}\n`);
  const url = `http://127.0.0.1:${receiver.port}/hooks`;
  const client = { name: 'shop', apiKeySha256: hash('sha256', apiKey[1], 'hex') };
  const gateway = await startGateway(t, {
    environments: { production: environment },
    clients: [{ ...client, notifications: { urls: [url], secretFile } }],
    ...eager,
    ...sections,
  });
  const statuses = () => receiver.received.map(({ body }) => JSON.parse(body).transactionStatus);
  const initiate = (...fields: readonly Field[]) =>
    call(gateway.url, {
      ...initiation,
      headers: [...initiation.headers, ...fields, apiKey, ['TPP-Notification-URI', url]],
    });
  return { gateway, folder, initiate, statuses };
}

describe('the reads of the gateway itself', () => {
  for (const [name, fields] of Object.entries(banks))
    test(`show webhooks and waiting reads a change at ${name}`, async (t) => {
      const profile = profileSchema.parse(readBankProfile(`examples/banks/${name}.yaml`));
      const bank = createSimulatedBank({ profile });
      await bank.start();
      t.after(() => bank.stop());
      const { production } = parse(readFileSync(`config/banks/${name}.yaml`, 'utf8')).environments;
      const { query: demandedQuery } = profile.requires;
      const query = production.query && { query: { ...production.query, ...demandedQuery } };
      const environment = { ...production, ...query, baseUrl: bank.baseUrl };
      const { gateway, initiate, statuses } = await startAll(t, environment);

      const created = await initiate(...fields);
      assert.deepEqual([created.status, created.header('ASPSP-Notification-Support')], [201, 'true']);
      const paymentId = String(jsonOf(created).paymentId);
      const wait = call(gateway.url, {
        method: 'GET',
        path: `${transfersPath}/${encodeURIComponent(paymentId)}/status`,
        headers: [...fields, payerAddress, apiKey, ['Prefer', 'wait=50']],
      });
      await untilListening([gateway], 'wait', 1);
      bank.setStatus(paymentId, 'ACSP');

      assert.deepEqual(jsonOf(await wait).transactionStatus, 'ACSP');
      await until(20_000, 'the webhook arrives', () => statuses().includes('ACSP'));
      const { text } = await callAdminApi(gateway, 'GET', '/metrics');
      assert.match(text, /penstock_polls_total\{[^}]*outcome="changed"/);
      assert.doesNotMatch(text, /penstock_polls_total\{[^}]*outcome="(?:refused|failed)"/);
    });

  for (const status of [400, 401])
    test(`make a subscription failing after three answers with ${status} in a row, and the next good one ends that`, async (t) => {
      const bank = { refuses: true, status: 'RCVD' };
      const stub = await startStubBank(t, ({ method }) => {
        if (method === 'POST') return { ...statusResponse('RCVD', { paymentId: '1' }), status: 201 };
        return bank.refuses ? { status, body: '{}' } : statusResponse(bank.status);
      });
      const { gateway, initiate, statuses } = await startAll(t, { baseUrl: stub.baseUrl });
      await initiate();
      const listed = async () => {
        const { text } = await callAdminApi(gateway, 'GET', '/api/notifications?payment=1');
        return JSON.parse(text)[0];
      };
      await until(30_000, 'it is failing', async () => (await listed())?.state === 'failing');
      assert.equal(stub.requests.filter(({ method }) => method === 'GET').length, 3);
      assert.equal((await listed()).readError, `the bank answered ${status}`);
      const [line = ''] = gateway.logLines.filter((text) => text.includes('cannot be read'));
      assert.match(line, new RegExp(`the bank answered ${status}`));
      const { text } = await callAdminApi(gateway, 'GET', '/api/notifications?state=failing');
      assert.equal(JSON.parse(text).length, 1);
      const summary = await callAdminApi(gateway, 'GET', '/api/notifications/summary');
      assert.equal(JSON.parse(summary.text).tenants[0].failing, 1);

      bank.refuses = false;
      bank.status = 'ACSP';
      await until(30_000, 'the webhook arrives', () => statuses().includes('ACSP'));
      await until(5_000, 'its delivery is recorded', async () => (await listed())?.state === 'active');
      assert.ok(gateway.logLines.some((text) => text.includes('can be read again')));
    });

  test('do not store the fields that the bank needs without a key, and keep them out of the log and the state', async (t) => {
    const bic = 'GENODEF1S08';
    const stub = await startStubBank(t, ({ method, header }) => {
      if (method === 'POST') return { ...statusResponse('RCVD', { paymentId: '1' }), status: 201 };
      return header('x-bic') === bic ? statusResponse('ACSP') : { status: 400, body: '{}' };
    });
    const environment = { baseUrl: stub.baseUrl, callerHeaders: ['X-BIC'] };
    const folder = temporaryFolder(t);
    const file = join(folder, 'state');
    const plain = await startAll(t, environment, { state: { file } });
    const refused = await plain.initiate(['X-BIC', bic]);
    assert.equal(refused.header('ASPSP-Notification-Support'), 'false');

    const encryptionKeyFile = join(folder, 'key');
    writeFileSync(encryptionKeyFile, randomBytes(32).toString('base64'));
    const other = join(folder, 'other');
    const encrypted = await startAll(t, environment, { state: { file: other, encryptionKeyFile } });
    assert.equal((await encrypted.initiate(['X-BIC', bic])).header('ASPSP-Notification-Support'), 'true');
    await until(20_000, 'the webhook arrives', () => encrypted.statuses().includes('ACSP'));
    for (const { gateway } of [plain, encrypted]) assert.ok(!gateway.logLines.join().includes(bic));
    for (const stored of [file, other, `${file}-wal`, `${other}-wal`])
      assert.ok(!readFileSync(stored, 'latin1').includes(bic), stored);
  });
});
