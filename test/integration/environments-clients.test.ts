/** A client that may use the sandbox alone reaches production by nothing that it can send. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Call, call } from '../kit/call.ts';
import { switchTo } from '../kit/operator.ts';
import { initiation, transfers } from '../kit/request.ts';
import { inside, keyOf, startSides } from '../kit/sides.ts';

const statusOf = (id: string): Call => ({ method: 'GET', path: `${transfers}/${id}/status` });
const cancel = (id: string): Call => ({ method: 'DELETE', path: `${transfers}/${id}` });

describe('a client that may use the sandbox alone', () => {
  test('pays there, whichever environment is active', async (t) => {
    const { pay, gateway, reached } = await startSides(t);
    await switchTo(gateway, 'production');
    assert.match(await pay('till'), /^sandbox-/);
    assert.match(await pay('shop'), /^production-/);
    assert.deepEqual(reached(), [1, 1]);
  });

  test('cannot name production', async (t) => {
    const { ask, pay, reached } = await startSides(t);
    const own = await pay('till');
    for (const one of [initiation, statusOf(own), cancel(own), statusOf('never-seen')]) {
      const reply = await ask('till', inside('production', one));
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], [403, 'ENVIRONMENT_FORBIDDEN']);
      assert.ok(!reply.text.includes(own));
    }
    assert.deepEqual(reached(), [1, 0]);
  });

  test('cannot name it in another spelling, twice, or by a list', async (t) => {
    const { ask, reached } = await startSides(t);
    for (const name of [
      'Production',
      'production ',
      'sandbox, production',
      'sandbox,production',
      '',
      '*',
      'prod\u00fcction',
    ]) {
      const reply = await ask('till', inside(name, initiation));
      const code =
        name.trim() === 'production' ? [403, 'ENVIRONMENT_FORBIDDEN'] : [400, 'ENVIRONMENT_UNKNOWN'];
      assert.deepEqual([reply.status, reply.header('Penstock-Error')], code, name);
    }
    const twice = await ask('till', inside('production', inside('sandbox', initiation)));
    assert.deepEqual([twice.status, twice.header('Penstock-Error')], [400, 'HEADER_MALFORMED']);
    assert.deepEqual(reached(), [0, 0]);
  });

  test('cannot reach it by a path', async (t) => {
    const { ask, production, reached } = await startSides(t);
    const paths = [
      `/psd2${transfers}`,
      transfers.replace('/berlingroup', '/production/berlingroup'),
      `${production.baseUrl}${transfers}`,
      `${transfers}?environment=production`,
      `${transfers}/../../../../psd2${transfers}`,
    ];
    for (const path of paths) {
      const reply = await ask('till', { ...initiation, path });
      assert.ok([400, 404].includes(reply.status), `${path}: ${reply.status}`);
    }
    assert.deepEqual(reached(), [0, 0]);
  });

  test("cannot reach it by an id: its tenant's, another tenant's, or one that nobody has seen", async (t) => {
    const { ask, pay, reached } = await startSides(t);
    const [ofTenant, foreign] = [await pay('shop', 'production'), await pay('rival', 'production')];
    const before = reached();
    for (const one of [statusOf, cancel]) {
      for (const [id, status] of [
        [ofTenant, 403],
        [foreign, 404],
        ['never-seen', 404],
      ] as const) {
        assert.equal((await ask('till', one(id))).status, status, id);
        assert.ok((await ask('till', inside('sandbox', one(id)))).status >= 400, id);
      }
    }
    assert.deepEqual(reached(), before);
  });

  test('sees what its tenant paid in the sandbox, whichever of its clients paid', async (t) => {
    const { ask, pay } = await startSides(t);
    assert.equal((await ask('till', statusOf(await pay('shop')))).status, 200);
    assert.equal((await ask('shop', statusOf(await pay('till')))).status, 200);
  });
});

describe('a caller that nobody knows', () => {
  test('is 401 with the same answer, whatever it asks for, and reaches nothing', async (t) => {
    const { gateway, pay, reached } = await startSides(t);
    const id = await pay('shop');
    const before = reached();
    const keys = [
      [],
      [['X-API-Key', '']],
      [['X-API-Key', 'wrong']],
      [['X-API-Key', keyOf('shop').toUpperCase()]],
    ] as const;
    const answers = new Set<string>();
    for (const key of keys) {
      for (const one of [
        initiation,
        statusOf(id),
        cancel(id),
        statusOf('never-seen'),
        inside('nowhere', statusOf(id)),
      ]) {
        const reply = await call(gateway.url, { ...one, headers: [...(one.headers ?? []), ...key] });
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [401, 'CLIENT_UNKNOWN']);
        answers.add(reply.text);
      }
    }
    assert.equal(answers.size, 1);
    assert.deepEqual(reached(), before);
  });
});
