/** Changes of the configuration under stored payments: nothing is paid twice, sent to another bank, or shown to another tenant. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import type { State } from '../../src/state/ports.ts';
import { readAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { createFailingState } from '../kit/failing-state.ts';
import { type GatewayUnderTest, publicUrl, type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A client whose API key is named after it, unless another one is named. */
const client = (name: string, key = name) => ({ name, apiKeySha256: sha256(`key of ${key}`) });

const header = (key: string | undefined) =>
  key === undefined ? [] : ([['X-API-Key', `key of ${key}`]] as const);

const pay = ({ url }: GatewayUnderTest, key: string | undefined, requestId = randomUUID()): Promise<Reply> =>
  call(url, { ...initiation, requestId, headers: [...initiation.headers, ...header(key)] });

const ask = (
  { url }: GatewayUnderTest,
  method: 'GET' | 'DELETE',
  key: string | undefined,
  id: unknown,
): Promise<Reply> => call(url, { method, path: `${transfersPath}/${id}`, headers: header(key) });

const idOf = (reply: Reply) => jsonOf(reply).paymentId;
const verdictOf = (reply: Reply) => reply.header('Penstock-Error') ?? reply.status;
const isReplay = (reply: Reply) => reply.header('Idempotent-Replayed') === 'true';

interface Setting {
  readonly bank: SimulatedBank;
  readonly sections: Sections;
  readonly state: State;
  readonly gateway: GatewayUnderTest;
}

/** A gateway with one bank as the environment `sandbox`. */
async function start(
  t: TestContext,
  more: Sections = {},
  state: State = createMemoryState(),
): Promise<Setting> {
  const bank = await startBank(t, { name: 'one' });
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, ...more };
  return { bank, sections, state, gateway: await startGateway(t, sections, state) };
}

const refusal = (what: RegExp) => (thrown: unknown) => {
  assert.match(String(thrown), what);
  return true;
};

describe('a tenant that is renamed', () => {
  const before = { clients: [client('shop')] };
  const withoutFormerly = { clients: [client('store', 'shop')] };
  const withFormerly = { ...withoutFormerly, tenants: { store: { formerly: ['shop'] } } };

  test('is refused by a reload and by a start if the configuration does not name the former tenant, and the old configuration stays', async (t) => {
    const { bank, gateway, sections, state } = await start(t, before);
    const requestId = randomUUID();
    assert.equal((await pay(gateway, 'shop', requestId)).status, 201);
    const says = refusal(/tenants: \{ store: \{ formerly: \[shop\] \} \}/);
    await assert.rejects(gateway.reload({ ...sections, ...withoutFormerly }), says);
    await assert.rejects(startGateway(t, { ...sections, ...withoutFormerly }, state), says);
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)));
    assert.equal(bank.payments.length, 1);
  });

  test('continues its payments, repeats and payments in doubt if the configuration names the former tenant', async (t) => {
    const { bank, gateway, sections } = await start(t, before);
    const [requestId, inDoubt] = [randomUUID(), randomUUID()];
    const first = await pay(gateway, 'shop', requestId);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    assert.equal((await pay(gateway, 'shop', inDoubt)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');

    await gateway.reload({ ...sections, ...withFormerly });
    const repeat = await pay(gateway, 'shop', requestId);
    assert.ok(isReplay(repeat));
    assert.equal(repeat.text, first.text);
    assert.equal(verdictOf(await pay(gateway, 'shop', inDoubt)), 'DUPLICATE_IN_DOUBT');
    assert.equal((await ask(gateway, 'GET', 'shop', idOf(first))).status, 200);
    assert.equal(bank.payments.length, 2);
    const [listed] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as readonly {
      tenant: string;
    }[];
    assert.equal(listed?.tenant, 'store', 'operators see the configured name');
  });

  test('is the same tenant on an instance with the new name and on one with the old name', async (t) => {
    const { bank, gateway: old, sections, state } = await start(t, before);
    const renamed = await startGateway(t, { ...sections, ...withFormerly }, state);
    for (const [first, second] of [
      [old, renamed],
      [renamed, old],
    ] as const) {
      const requestId = randomUUID();
      const reply = await pay(first, 'shop', requestId);
      assert.ok(isReplay(await pay(second, 'shop', requestId)));
      assert.equal((await ask(second, 'GET', 'shop', idOf(reply))).status, 200);
    }
    assert.equal(bank.payments.length, 2);
    await old.reload(sections);
    assert.equal((await pay(old, 'shop')).status, 201);
  });
});

describe('two tenants that are merged', () => {
  test('continue the payments and the repeats of both', async (t) => {
    const { bank, gateway, sections } = await start(t, { clients: [client('shop'), client('rival')] });
    const ids = { shop: randomUUID(), rival: randomUUID() };
    const replies = {
      shop: await pay(gateway, 'shop', ids.shop),
      rival: await pay(gateway, 'rival', ids.rival),
    };
    assert.equal(verdictOf(await ask(gateway, 'GET', 'shop', idOf(replies.rival))), 'PAYMENT_UNKNOWN');

    const clients = [client('shop'), { ...client('rival'), tenant: 'shop' }];
    await assert.rejects(gateway.reload({ ...sections, clients }), refusal(/formerly: \[rival\]/));
    await gateway.reload({ ...sections, clients, tenants: { shop: { formerly: ['rival'] } } });
    for (const key of ['shop', 'rival'] as const) {
      for (const first of ['shop', 'rival'] as const) {
        const repeat = await pay(gateway, key, ids[first]);
        assert.ok(isReplay(repeat), `${key} repeats what ${first} sent`);
        assert.equal(repeat.text, replies[first].text);
        assert.equal((await ask(gateway, 'GET', key, idOf(replies[first]))).status, 200);
      }
    }
    assert.equal(bank.payments.length, 2);
  });

  test('are paid once on two instances that reload one after the other, if the clients of one were removed before', async (t) => {
    const before = { clients: [client('shop'), client('rival')] };
    const { bank, gateway: one, sections, state } = await start(t, before, withoutMessages());
    const other = await startGateway(t, sections, state);
    for (const instance of [one, other]) await instance.reload({ ...sections, clients: [client('shop')] });

    const clients = [client('shop'), { ...client('rival'), tenant: 'shop' }];
    const merged = { ...sections, clients, tenants: { shop: { formerly: ['rival'] } } };
    await one.reload(merged);
    const requestId = randomUUID();
    assert.equal((await pay(one, 'rival', requestId)).status, 201);
    assert.equal((await pay(other, 'rival', requestId)).status, 401);
    await other.reload(merged);
    assert.ok(isReplay(await pay(other, 'rival', requestId)));
    assert.equal(bank.payments.length, 1);
  });
});

/** A state whose instances learn of changes only when they read them, every second. */
function withoutMessages(): State {
  const state = createMemoryState();
  return { ...state, pubsub: { ...state.pubsub, publish: async () => {} } };
}

describe('clients that are configured for the first time', () => {
  const clients = [client('shop')];

  test('are refused after anonymous payments if no tenant continues or ends them', async (t) => {
    const { bank, gateway, sections, state } = await start(t);
    const requestId = randomUUID();
    assert.equal((await pay(gateway, undefined, requestId)).status, 201);
    const says = refusal(/formerly: \[anonymous\].*retired: \[anonymous\]/);
    await assert.rejects(gateway.reload({ ...sections, clients }), says);
    await assert.rejects(startGateway(t, { ...sections, clients }, state), says);
    assert.ok(isReplay(await pay(gateway, undefined, requestId)));
    assert.equal(bank.payments.length, 1);
  });

  test('are refused if an earlier release, which recorded no tenants, may have made anonymous payments', async (t) => {
    const ofEarlierRelease = createMemoryState();
    await ofEarlierRelease.keyValues.write('environment:active', '');
    const { gateway, sections } = await start(t, {}, ofEarlierRelease);
    const says = refusal(/formerly: \[anonymous\].*retired: \[anonymous\]/);
    await assert.rejects(gateway.reload({ ...sections, clients }), says);
    await gateway.reload({ ...sections, clients, tenants: { shop: { formerly: ['anonymous'] } } });
  });

  test('are accepted if nothing was paid before', async (t) => {
    const { gateway, sections } = await start(t);
    assert.equal((await ask(gateway, 'GET', undefined, 'unknown')).status, 404);
    await gateway.reload({ ...sections, clients });
    assert.equal((await pay(gateway, 'shop')).status, 201);
  });

  test('continue anonymous payments if their tenant was formerly anonymous', async (t) => {
    const { bank, gateway, sections } = await start(t);
    const requestId = randomUUID();
    const first = await pay(gateway, undefined, requestId);
    await gateway.reload({ ...sections, clients, tenants: { shop: { formerly: ['anonymous'] } } });
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)));
    assert.equal((await ask(gateway, 'DELETE', 'shop', idOf(first))).status, 204);
    assert.equal(bank.payments.length, 1);
  });

  test('cannot use anonymous payments if the tenant anonymous is retired', async (t) => {
    const { bank, gateway, sections } = await start(t);
    const first = await pay(gateway, undefined);
    await gateway.reload({ ...sections, clients, tenants: { retired: ['anonymous'] } });
    const before = bank.requests.length;
    assert.equal(verdictOf(await ask(gateway, 'GET', 'shop', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal(verdictOf(await ask(gateway, 'DELETE', 'shop', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal(bank.requests.length, before);
  });
});

describe('a tenant that is removed', () => {
  test('leaves payments that the remaining tenant can neither read nor cancel, and continues them when it is configured again', async (t) => {
    const both = [client('shop'), client('rival')];
    const { bank, gateway, sections } = await start(t, { clients: both });
    const requestId = randomUUID();
    const first = await pay(gateway, 'rival', requestId);
    await gateway.reload({ ...sections, clients: [client('shop')] });
    const before = bank.requests.length;
    for (const method of ['GET', 'DELETE'] as const)
      assert.equal(verdictOf(await ask(gateway, method, 'shop', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal(verdictOf(await ask(gateway, 'DELETE', 'shop', 'never-recorded')), 'PAYMENT_UNKNOWN');
    assert.equal(bank.requests.length, before);

    await gateway.reload({ ...sections, clients: [client('shop'), client('rival', 'new key')] });
    assert.ok(isReplay(await pay(gateway, 'new key', requestId)));
    assert.equal((await ask(gateway, 'DELETE', 'new key', idOf(first))).status, 204);
  });
});

describe('an environment that is removed', () => {
  test('leaves payments whose requests are refused, and never sent to another bank', async (t) => {
    const [sandbox, production] = [await startBank(t, { name: 'one' }), await startBank(t, { name: 'two' })];
    const environments = {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl },
      production: { baseUrl: production.baseUrl },
    };
    const gateway = await startGateway(t, { environments }, createMemoryState());
    const first = await pay(gateway, undefined);
    const onlyProduction = { environments: { production: environments.production } };
    await gateway.reload(onlyProduction);
    for (const method of ['GET', 'DELETE'] as const)
      assert.equal(verdictOf(await ask(gateway, method, undefined, idOf(first))), 'STATE_UNAVAILABLE');
    assert.equal(
      verdictOf(await ask(gateway, 'DELETE', undefined, 'never-recorded')),
      'ENVIRONMENT_MISMATCH',
    );
    assert.deepEqual(production.requests, []);
    await gateway.reload({ environments });
    assert.equal((await ask(gateway, 'DELETE', undefined, idOf(first))).status, 204);
  });
});

describe('a bank whose address changes', () => {
  async function startAndMove(t: TestContext) {
    const setting = await start(t);
    const other = await startBank(t, { name: 'two' });
    const moved = (movedFrom?: readonly string[]) => ({
      environments: { sandbox: { baseUrl: other.baseUrl, ...(movedFrom && { movedFrom }) } },
    });
    return { ...setting, other, moved };
  }

  test('is another bank: its payments are refused, a warning says what to write, and new payments go to the new address', async (t) => {
    const { bank, other, moved, gateway, sections } = await startAndMove(t);
    const requestId = randomUUID();
    const first = await pay(gateway, undefined, requestId);
    await gateway.reload(moved());
    assert.match(gateway.logLines.join(''), /environments\.sandbox\.movedFrom: \[http:/);
    for (const method of ['GET', 'DELETE'] as const) {
      const reply = await ask(gateway, method, undefined, idOf(first));
      assert.equal(verdictOf(reply), 'STATE_UNAVAILABLE');
      assert.match(reply.text, /environments\.sandbox\.movedFrom/);
    }
    assert.ok(isReplay(await pay(gateway, undefined, requestId)));
    assert.deepEqual(other.requests, []);

    const second = await pay(gateway, undefined);
    assert.equal((await ask(gateway, 'GET', undefined, idOf(second))).status, 200);
    assert.deepEqual([bank.payments.length, other.payments.length], [1, 1]);

    await gateway.reload(moved([bank.baseUrl]));
    const before = other.requests.length;
    for (const reply of [first, second])
      assert.notEqual(verdictOf(await ask(gateway, 'GET', undefined, idOf(reply))), 'STATE_UNAVAILABLE');
    assert.equal(other.requests.length, before + 2);
    await gateway.reload(sections);
    assert.equal((await ask(gateway, 'GET', undefined, idOf(first))).status, 200);
  });

  test('is the same bank if movedFrom says so: its payments continue at the new address', async (t) => {
    const { bank, other, moved, gateway } = await startAndMove(t);
    other.nextPaymentId('same-id');
    await pay(gateway, undefined);
    bank.nextPaymentId('same-id');
    await pay(gateway, undefined);
    await gateway.reload(moved([bank.baseUrl]));
    const before = other.requests.length;
    await ask(gateway, 'GET', undefined, 'same-id');
    assert.equal(other.requests.length, before + 1);
  });
});

describe('a replay after listen.publicUrl changed', () => {
  test('carries links of the current public URL', async (t) => {
    const { gateway, sections } = await start(t);
    const requestId = randomUUID();
    const first = await pay(gateway, undefined, requestId);
    assert.ok(first.text.includes(`${publicUrl}/berlingroup/`));
    await gateway.reload({ ...sections, listen: { publicUrl: 'https://new.example/psd2' } });
    const repeat = await pay(gateway, undefined, requestId);
    assert.ok(isReplay(repeat));
    assert.equal(repeat.text, first.text.replaceAll(publicUrl, 'https://new.example/psd2'));
    assert.equal(
      repeat.header('Location'),
      first.header('Location')?.replace(publicUrl, 'https://new.example/psd2'),
    );
  });
});

describe('the state of an earlier release', () => {
  const keyOf = (paymentId: string) =>
    `payment:${createHash('sha256').update(paymentId).digest('base64url')}`;

  /** As release 1.0 wrote it: two payments of two tenants in two environments, and no record of identities. */
  async function earlierState() {
    const state = createMemoryState();
    const { keyValues } = state;
    await keyValues.write('environment:active', '{"environment":"sandbox","version":3,"epoch":"first"}');
    const record = (environment: string, tenant: string) =>
      `{"v":1,"homes":[{"environment":"${environment}","tenant":"${tenant}"}],"renewedAt":${Date.now()},"endless":false}`;
    await keyValues.write(keyOf('own'), record('sandbox', 'shop'));
    await keyValues.write(keyOf('foreign'), record('sandbox', 'rival'));
    await keyValues.write(keyOf('elsewhere'), record('production', 'shop'));
    return state;
  }

  test('is read: payments of removed tenants and environments are refused, and own payments continue', async (t) => {
    const { bank, gateway } = await start(t, { clients: [client('shop')] }, await earlierState());
    bank.nextPaymentId('own');
    await call(bank.baseUrl, initiation);
    const before = bank.requests.length;
    assert.equal(verdictOf(await ask(gateway, 'DELETE', 'shop', 'foreign')), 'PAYMENT_UNKNOWN');
    assert.equal(verdictOf(await ask(gateway, 'DELETE', 'shop', 'elsewhere')), 'STATE_UNAVAILABLE');
    assert.equal(verdictOf(await ask(gateway, 'DELETE', 'shop', 'never-recorded')), 'ENVIRONMENT_MISMATCH');
    assert.equal(bank.requests.length, before);
    assert.equal((await ask(gateway, 'DELETE', 'shop', 'own')).status, 204);
  });
});

describe('a state that cannot be read at the start', () => {
  test('refuses requests until the identities are known, and serves them afterwards', async (t) => {
    const shared = createMemoryState();
    const { bank, gateway: first, sections } = await start(t, { clients: [client('shop')] }, shared);
    const payment = await pay(first, 'shop');
    const state = createFailingState(shared);
    state.fail();
    const second = await startGateway(t, { ...sections, clients: [client('shop')] }, state);
    assert.equal(verdictOf(await ask(second, 'GET', 'shop', idOf(payment))), 'STATE_UNAVAILABLE');
    state.recover();
    await until(
      10_000,
      'the identities are known',
      async () => (await ask(second, 'GET', 'shop', idOf(payment))).status === 200,
    );
    assert.equal(bank.payments.length, 1);
  });

  test('refuses requests and is not ready while the record of identities is unreadable', async (t) => {
    const state = createMemoryState();
    await state.keyValues.write('identities', 'garbage');
    const { bank, gateway } = await start(t, {}, state);
    assert.equal(verdictOf(await pay(gateway, undefined)), 'STATE_UNAVAILABLE');
    const ready = () => call(gateway.adminUrl, { method: 'GET', path: '/health/ready' });
    assert.match(
      (await ready()).text,
      /The key \\"identities\\" of the shared state has an unexpected value/,
    );
    assert.equal((await ready()).status, 503);
    assert.deepEqual(bank.requests, []);
    await state.keyValues.remove('identities');
    await until(10_000, 'the instance is ready', async () => (await ready()).status === 200);
    assert.equal((await pay(gateway, undefined)).status, 201);
  });

  test('refuses all requests with the cause if it turns out to contradict the configuration', async (t) => {
    const shared = createMemoryState();
    const { bank, sections, gateway: first } = await start(t, { clients: [client('shop')] }, shared);
    const requestId = randomUUID();
    await pay(first, 'shop', requestId);
    const state = createFailingState(shared);
    state.fail();
    const second = await startGateway(t, { ...sections, clients: [client('store', 'shop')] }, state);
    state.recover();
    await until(10_000, 'the contradiction is reported', async () => {
      const { text } = await call(second.adminUrl, { method: 'GET', path: '/health/ready' });
      return text.includes('tenants: { store: { formerly: [shop] } }');
    });
    const reply = await pay(second, 'shop', requestId);
    assert.deepEqual([reply.status, verdictOf(reply)], [503, 'STATE_UNAVAILABLE']);
    assert.match(reply.text, /contradict/);
    assert.ok(!reply.text.includes('store'), 'the TPP does not see names of tenants');
    assert.match(second.logLines.join(''), /"level":"error".*formerly: \[shop\]/);
    assert.equal(bank.payments.length, 1);

    await second.reload({
      ...sections,
      clients: [client('store', 'shop')],
      tenants: { store: { formerly: ['shop'] } },
    });
    assert.ok(isReplay(await pay(second, 'shop', requestId)));
  });
});
