/** A client that may use only the sandbox cannot reach production, whatever it sends. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { switchEnvironment } from '../kit/admin-api.ts';
import { type Call, call } from '../kit/call.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, startTwoEnvironments, withEnvironmentHeader } from '../kit/two-environments.ts';

const statusOf = (id: string): Call => ({ method: 'GET', path: `${transfersPath}/${id}/status` });
const cancel = (id: string): Call => ({ method: 'DELETE', path: `${transfersPath}/${id}` });

describe('a client that may use only the sandbox', () => {
  test('pays there, whichever environment is active', async (t) => {
    const { pay, gateway, callCounts } = await startTwoEnvironments(t);
    await switchEnvironment(gateway, 'production');
    assert.match(await pay('till'), /^sandbox-/);
    assert.match(await pay('shop'), /^production-/);
    assert.deepEqual(callCounts(), [1, 1]);
  });

  test('cannot request production', async (t) => {
    const { send, pay, callCounts } = await startTwoEnvironments(t);
    const own = await pay('till');
    for (const one of [initiation, statusOf(own), cancel(own), statusOf('never-seen')]) {
      const reply = await send('till', withEnvironmentHeader('production', one));
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], [403, 'ENVIRONMENT_FORBIDDEN']);
      assert.ok(!reply.text.includes(own));
    }
    assert.deepEqual(callCounts(), [1, 0]);
  });

  test('cannot request production in another spelling, twice, or in a list', async (t) => {
    const { send, callCounts } = await startTwoEnvironments(t);
    for (const name of [
      'Production',
      'production ',
      'sandbox, production',
      'sandbox,production',
      '',
      '*',
      'prod\u00fcction',
    ]) {
      const reply = await send('till', withEnvironmentHeader(name, initiation));
      const code =
        name.trim() === 'production' ? [403, 'ENVIRONMENT_FORBIDDEN'] : [400, 'ENVIRONMENT_UNKNOWN'];
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], code, name);
    }
    const twice = await send(
      'till',
      withEnvironmentHeader('production', withEnvironmentHeader('sandbox', initiation)),
    );
    assert.deepEqual([twice.status, twice.header('Penstock-Error')], [400, 'HEADER_MALFORMED']);
    assert.deepEqual(callCounts(), [0, 0]);
  });

  test('cannot reach production by a path', async (t) => {
    const { send, production, callCounts } = await startTwoEnvironments(t);
    const paths = [
      `/psd2${transfersPath}`,
      transfersPath.replace('/berlingroup', '/production/berlingroup'),
      `${production.baseUrl}${transfersPath}`,
      `${transfersPath}/../../../../psd2${transfersPath}`,
    ];
    for (const path of paths) {
      const reply = await send('till', { ...initiation, path });
      assert.ok([400, 404].includes(reply.status), `${path}: ${reply.status}`);
    }
    assert.deepEqual(callCounts(), [0, 0]);
    await send('till', {
      ...initiation,
      path: `${transfersPath}?environment=production&Penstock-Environment=production`,
    });
    assert.deepEqual(callCounts(), [1, 0], 'a query selects no environment');
  });

  test('cannot reach production by a payment id: of its tenant, of another tenant, or unknown', async (t) => {
    const { send, pay, callCounts } = await startTwoEnvironments(t);
    const [ofTenant, foreign] = [await pay('shop', 'production'), await pay('rival', 'production')];
    const before = callCounts();
    for (const one of [statusOf, cancel]) {
      for (const [id, status] of [
        [ofTenant, 403],
        [foreign, 404],
        ['never-seen', 404],
      ] as const) {
        assert.equal((await send('till', one(id))).status, status, id);
        assert.ok((await send('till', withEnvironmentHeader('sandbox', one(id)))).status >= 400, id);
      }
    }
    assert.deepEqual(callCounts(), before);
  });

  test('can read all payments of its tenant in the sandbox', async (t) => {
    const { send, pay } = await startTwoEnvironments(t);
    assert.equal((await send('till', statusOf(await pay('shop')))).status, 200);
    assert.equal((await send('shop', statusOf(await pay('till')))).status, 200);
  });
});

describe('an unknown client', () => {
  test('gets the same 401 response for every request, and reaches no bank', async (t) => {
    const { gateway, pay, callCounts } = await startTwoEnvironments(t);
    const id = await pay('shop');
    const before = callCounts();
    const keys = [
      [],
      [['X-API-Key', '']],
      [['X-API-Key', 'wrong']],
      [['X-API-Key', apiKeyOf('shop').toUpperCase()]],
    ] as const;
    const answers = new Set<string>();
    for (const key of keys) {
      for (const one of [
        initiation,
        statusOf(id),
        cancel(id),
        statusOf('never-seen'),
        withEnvironmentHeader('nowhere', statusOf(id)),
      ]) {
        const reply = await call(gateway.url, { ...one, headers: [...(one.headers ?? []), ...key] });
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [401, 'CLIENT_UNKNOWN']);
        answers.add(reply.text);
      }
    }
    assert.equal(answers.size, 1);
    assert.deepEqual(callCounts(), before);
  });
});
