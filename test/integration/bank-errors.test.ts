/** A bank that refuses: its error code is in records, explanations and counts; nothing else of its answer is. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { anyCanary } from '../kit/canaries.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, statusRead } from '../kit/request.ts';
import { type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { until } from '../kit/within.ts';

const json = [['Content-Type', 'application/json']] as const;

const refusal = (code: unknown, status = 401): StubResponse => ({
  status,
  headers: [...json, ['X-Canary', 'canary-header-of-the-bank']],
  body: JSON.stringify({
    tppMessages: [{ category: 'ERROR', code, path: 'canary-path', text: 'canary-text of Anna' }],
  }),
});

/** A gateway with a state file, at a bank that refuses everything in the same way. */
async function startRefused(t: TestContext, response: StubResponse) {
  const bank = await startStubBank(t, () => response);
  const file = join(temporaryFolder(t), 'state.db');
  const gateway = await startGatewayProcess(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    state: { file },
  });
  const read = async (path: string) => {
    const reply = await callAdminApi(gateway, 'GET', path);
    assert.equal(reply.status, 200, reply.text);
    return JSON.parse(reply.text);
  };
  return { gateway, file, read };
}

describe('a bank that refuses every initiation', () => {
  test('with CERTIFICATE_REVOKED: the record, the explanation, the search and the counts show the code', async (t) => {
    const { gateway, file, read } = await startRefused(t, refusal('CERTIFICATE_REVOKED'));
    const requestId = randomUUID();
    const canaries = [
      ['X-Canary', 'canary-header'],
      ['Authorization', 'Bearer canary-token'],
      ['PSU-Corporate-ID', 'canary-psu'],
    ] as const;
    const body = JSON.stringify({ ...JSON.parse(String(initiation.body)), creditorName: 'canary-name' });
    const headers = [...initiation.headers, ...canaries];
    const reply = await call(gateway.url, { ...initiation, body, requestId, headers });
    assert.equal(reply.status, 401, reply.text);

    const [record] = await read(`/api/decisions/${requestId}`);
    assert.deepEqual(
      [record.status, record.outcome, record.bankError, record.error],
      [401, 'refused-by-bank', 'CERTIFICATE_REVOKED', undefined],
    );
    const { requests } = await read('/api/search?bankError=CERTIFICATE_REVOKED&outcome=refused-by-bank');
    assert.deepEqual(
      requests.map(({ xRequestId }: { readonly xRequestId: string }) => xRequestId),
      [requestId],
    );
    assert.equal((await read('/api/search?error=CERTIFICATE_REVOKED')).requests.length, 1);
    const invalid = await callAdminApi(gateway, 'GET', '/api/search?client=a%00b');
    assert.equal(invalid.status, 400, invalid.text);
    const [error] = await read('/api/errors');
    assert.deepEqual(
      [error.bankStatus, error.bankError, error.code, error.count],
      [401, 'CERTIFICATE_REVOKED', null, 1],
    );
    const explain = gateway.run('explain', requestId);
    assert.equal(await explain.exitCode(), 0, explain.stderr());
    assert.match(explain.stdout(), /answered 401 CERTIFICATE_REVOKED, served from bank, after/);
    assert.match(explain.stdout(), /The bank answered 401 CERTIFICATE_REVOKED/);
    const search = gateway.run('search', '--bank-error', 'CERTIFICATE_REVOKED');
    assert.equal(await search.exitCode(), 0, search.stderr());
    assert.match(search.stdout(), new RegExp(`401 CERTIFICATE_REVOKED .*${requestId}`));

    await gateway.stop();
    const database = new DatabaseSync(file);
    t.after(() => database.close());
    for (const table of ['request_record', 'minute_error', 'minute_figure', 'record_share']) {
      const rows = database.prepare(`SELECT * FROM ${table}`).all();
      assert.ok(rows.length > 0, table);
      assert.doesNotMatch(JSON.stringify(rows), anyCanary, table);
    }
  });

  test('with a code that is not one of the standard: the record says `other`', async (t) => {
    const { gateway, read } = await startRefused(t, refusal('canary: account of Anna', 403));
    const requestId = randomUUID();
    await call(gateway.url, { ...initiation, requestId });
    const [record] = await read(`/api/decisions/${requestId}`);
    assert.equal(record.bankError, 'other');
    assert.doesNotMatch(JSON.stringify(record), anyCanary);
  });

  test('with a long body, to a read: it reaches the TPP, and is not read for the record', async (t) => {
    const padding = 'x'.repeat(100_000);
    const body = JSON.stringify({
      tppMessages: [{ category: 'ERROR', code: 'TOKEN_INVALID', text: padding }],
    });
    const { gateway, read } = await startRefused(t, { status: 401, headers: json, body });
    const requestId = randomUUID();
    const reply = await call(gateway.url, { ...statusRead, requestId });
    assert.deepEqual([reply.status, reply.text], [401, body]);
    const [record] = await read(`/api/decisions/${requestId}`);
    assert.deepEqual([record.outcome, record.bankError], ['refused-by-bank', undefined]);
  });

  test('in XML and as problem details, also to a status read', async (t) => {
    const xml = '<tppMessages><category>ERROR</category><code>RESOURCE_UNKNOWN</code></tppMessages>';
    const answers: readonly StubResponse[] = [
      { status: 404, headers: [['Content-Type', 'application/xml']], body: xml },
      { status: 404, headers: json, body: '{"type":"urn:x","title":"x","code":"RESOURCE_UNKNOWN"}' },
    ];
    for (const answer of answers) {
      const { gateway, read } = await startRefused(t, answer);
      const requestId = randomUUID();
      assert.equal((await call(gateway.url, { ...statusRead, requestId })).status, 404);
      const isStored = async () =>
        (await callAdminApi(gateway, 'GET', `/api/decisions/${requestId}`)).status === 200;
      await until(5_000, 'the record', isStored);
      const [record] = await read(`/api/decisions/${requestId}`);
      assert.deepEqual([record.servedFrom, record.bankError], ['bank', 'RESOURCE_UNKNOWN']);
    }
  });
});
