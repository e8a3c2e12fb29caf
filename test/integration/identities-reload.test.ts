/** Changes of the configuration under stored payments: nothing is paid twice, sent to another bank, or shown to another tenant. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { callAdminApi, readAdminApi } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { createFaultyDatabase } from '../kit/faulty-database.ts';
import { publicUrl, type Sections, startBank } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { ask, change, client, idOf, isReplay, pay, shareDatabase, verdictOf } from '../kit/tenants.ts';
import { until } from '../kit/within.ts';

const refusal = (what: RegExp) => (thrown: unknown) => {
  assert.match(String(thrown), what);
  return true;
};

/** A gateway with one bank as the environment `sandbox`. */
async function start(t: TestContext, more: Sections = {}) {
  const shared = await shareDatabase(t);
  const sections = { ...shared.sections, ...more };
  return { ...shared, sections, gateway: await shared.startAnother(sections) };
}

describe('a tenant that is renamed', () => {
  const before = { clients: [client('shop')] };
  const renamed = { clients: [client('store', 'shop')] };

  test('is refused by a reload and by a start until it is renamed by the command, and the old configuration stays', async (t) => {
    const { bank, gateway, sections, startAnother } = await start(t, before);
    const requestId = randomUUID();
    assert.equal((await pay(gateway, 'shop', requestId)).status, 201);
    const says = refusal(
      /the API key of client "store" belongs to tenant "shop", .* to tenant "store"; .*penstock tenants rename shop store; .*penstock tenants move-credential store store/,
    );
    await assert.rejects(gateway.reload({ ...sections, ...renamed }), says);
    await assert.rejects(startAnother({ ...sections, ...renamed }), says);
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)));

    await change(gateway, 'tenants/shop/rename', 'store');
    await gateway.reload({ ...sections, ...renamed });
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)));
    assert.equal(bank.payments.length, 1);
  });

  test('continues its payments, repeats and payments in doubt under the new name', async (t) => {
    const { bank, gateway, sections } = await start(t, before);
    const [requestId, inDoubt] = [randomUUID(), randomUUID()];
    const first = await pay(gateway, 'shop', requestId);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    assert.equal(verdictOf(await pay(gateway, 'shop', inDoubt)), 'OUTCOME_UNKNOWN');

    await change(gateway, 'tenants/shop/rename', 'store');
    await gateway.reload({ ...sections, ...renamed });
    const repeat = await pay(gateway, 'shop', requestId);
    assert.ok(isReplay(repeat));
    assert.equal(repeat.text, first.text);
    assert.equal(verdictOf(await pay(gateway, 'shop', inDoubt)), 'DUPLICATE_IN_DOUBT');
    assert.equal((await ask(gateway, 'GET', 'shop', idOf(first))).status, 200);
    assert.equal(bank.payments.length, 2);
    const [listed] = (await readAdminApi(gateway, '/api/in-doubt')) as unknown as readonly {
      tenant: string;
    }[];
    assert.equal(listed?.tenant, 'store', 'operators see the new name');
  });

  test('keeps its former names: another tenant beside it cannot have one of them', async (t) => {
    const { gateway, sections } = await start(t, before);
    await change(gateway, 'tenants/shop/rename', 'store');
    const both = { ...sections, clients: [client('store', 'shop'), client('shop', 'new key')] };
    await assert.rejects(gateway.reload(both), refusal(/"store" and "shop" are names of one tenant/));
  });
});

for (const dialect of ['sqlite', 'postgres'] as const)
  describe(`two instances with the old and the new configuration on one database: ${dialect}`, {
    skip: dialect === 'postgres' && skipWithoutPostgres,
  }, () => {
    test('find the payments and repeats of each other after a tenant was renamed', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother({ ...sections, clients: [client('shop')] });
      await change(old, 'tenants/shop/rename', 'store');
      const renamed = await startAnother({ ...sections, clients: [client('store', 'shop')] });
      for (const [first, second] of [
        [old, renamed],
        [renamed, old],
      ] as const) {
        const requestId = randomUUID();
        const reply = await pay(first, 'shop', requestId);
        assert.equal(reply.status, 201);
        assert.ok(isReplay(await pay(second, 'shop', requestId)));
        assert.equal((await ask(second, 'GET', 'shop', idOf(reply))).status, 200);
      }
      assert.equal(bank.payments.length, 2);
      await old.reload({ ...sections, clients: [client('shop')] });
      const again = await startAnother({ ...sections, clients: [client('shop')] });
      assert.equal((await pay(again, 'shop')).status, 201);
    });

    test('find the payments and repeats of each other after an environment was renamed', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const old = await startAnother(sections);
      const requestId = randomUUID();
      const first = await pay(old, undefined, requestId);
      await change(old, 'environments/sandbox/rename', 'bank-a');
      const renamed = await startAnother({ environments: { 'bank-a': { baseUrl: bank.baseUrl } } });
      assert.ok(isReplay(await pay(renamed, undefined, requestId)));
      const read = await ask(renamed, 'GET', undefined, idOf(first));
      assert.deepEqual([read.status, read.header('Penstock-Environment')], [200, 'bank-a']);
      const second = await pay(renamed, undefined);
      const cancelled = await ask(old, 'DELETE', undefined, idOf(second));
      assert.deepEqual([cancelled.status, cancelled.header('Penstock-Environment')], [204, 'sandbox']);
      assert.equal(bank.payments.length, 2);
    });

    test('do not show the payments of a tenant that only one of them has to the other one', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const one = await startAnother({ ...sections, clients: [client('shop')] });
      const other = await startAnother({ ...sections, clients: [client('rival')] });
      const payment = await pay(other, 'rival');
      const before = bank.requests.length;
      await until(10_000, 'the other instance knows of the tenant', async () => {
        const reply = await ask(one, 'GET', 'shop', 'never-recorded');
        return verdictOf(reply) === 'PAYMENT_UNKNOWN';
      });
      const reads = bank.requests.length;
      for (const method of ['GET', 'DELETE'] as const)
        assert.equal(verdictOf(await ask(one, method, 'shop', idOf(payment))), 'PAYMENT_UNKNOWN');
      assert.equal(bank.requests.length, reads);
      assert.ok(reads >= before);
    });

    test('are refused if they fix different addresses for an environment, and nothing is sent to the second one', async (t) => {
      const { bank, sections, startAnother } = await shareDatabase(t, dialect);
      const other = await startBank(t, { name: 'two' });
      const one = await startAnother(sections);
      const second = await startAnother({ environments: { sandbox: { baseUrl: other.baseUrl } } });
      const payment = await pay(one, undefined);
      assert.equal(payment.status, 201);
      for (const method of ['GET', 'DELETE'] as const)
        assert.equal(verdictOf(await ask(second, method, undefined, idOf(payment))), 'STATE_UNAVAILABLE');
      assert.equal(verdictOf(await pay(second, undefined)), 'STATE_UNAVAILABLE');
      assert.deepEqual([bank.payments.length, other.requests.length], [1, 0]);
    });
  });

describe('a client that works for another tenant', () => {
  test('is refused until the command has moved it, and leaves its payments to the former tenant', async (t) => {
    const { bank, gateway, sections, startAnother } = await start(t, {
      clients: [{ ...client('till'), tenant: 'shop' }, client('shop')],
    });
    const requestId = randomUUID();
    const first = await pay(gateway, 'till', requestId);
    const moved = { ...sections, clients: [{ ...client('till'), tenant: 'rival' }, client('shop')] };
    const says = refusal(/penstock tenants move-credential till rival/);
    await assert.rejects(gateway.reload(moved), says);
    await change(gateway, 'clients/till/move-credential', 'rival');
    await gateway.reload(moved);
    assert.equal(verdictOf(await ask(gateway, 'GET', 'till', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal((await ask(gateway, 'GET', 'shop', idOf(first))).status, 200);
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)), 'the repeat of the former tenant');
    assert.equal((await pay(gateway, 'till')).status, 201);
    assert.equal(bank.payments.length, 2);
    await assert.rejects(startAnother(sections), refusal(/penstock tenants move-credential till shop/));
  });
});

describe('clients that are configured for the first time', () => {
  const clients = [client('shop')];

  test('are refused after payments without clients until their tenant is named', async (t) => {
    const { bank, gateway, sections, startAnother } = await start(t);
    const requestId = randomUUID();
    const first = await pay(gateway, undefined, requestId);
    const says = refusal(/payments were made without clients, .*penstock tenants rename anonymous NEW/);
    await assert.rejects(gateway.reload({ ...sections, clients }), says);
    await assert.rejects(startAnother({ ...sections, clients }), says);
    assert.ok(isReplay(await pay(gateway, undefined, requestId)));

    await change(gateway, 'tenants/anonymous/rename', 'shop');
    await gateway.reload({ ...sections, clients });
    assert.ok(isReplay(await pay(gateway, 'shop', requestId)));
    assert.equal((await ask(gateway, 'DELETE', 'shop', idOf(first))).status, 204);
    assert.equal(bank.payments.length, 1);
  });

  test('cannot use the payments without clients if these were given to another tenant', async (t) => {
    const { bank, gateway, sections } = await start(t);
    const first = await pay(gateway, undefined);
    await change(gateway, 'tenants/anonymous/rename', 'former');
    await gateway.reload({ ...sections, clients });
    const before = bank.requests.length;
    for (const method of ['GET', 'DELETE'] as const)
      assert.equal(verdictOf(await ask(gateway, method, 'shop', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal(bank.requests.length, before);
  });

  test('are accepted if nothing was paid before, and are then the only tenant', async (t) => {
    const { gateway, sections } = await start(t);
    assert.equal((await ask(gateway, 'GET', undefined, 'unknown')).status, 404);
    await gateway.reload({ ...sections, clients });
    assert.equal((await pay(gateway, 'shop')).status, 201);
    assert.equal(verdictOf(await ask(gateway, 'GET', 'shop', 'unknown')), 404, 'the answer of the bank');
  });
});

describe('clients and tenants that are added, and keys that change', () => {
  test('continue without a command', async (t) => {
    const { bank, gateway, sections } = await start(t, { clients: [client('shop')] });
    const requestId = randomUUID();
    const first = await pay(gateway, 'shop', requestId);
    const clients = [
      client('shop', 'new key'),
      { ...client('till'), tenant: 'shop' },
      client('rival', 'key of rival'),
    ];
    await gateway.reload({ ...sections, clients });
    assert.equal((await pay(gateway, 'shop')).status, 401, 'the former key');
    for (const key of ['new key', 'till']) {
      assert.ok(isReplay(await pay(gateway, key, requestId)));
      assert.equal((await ask(gateway, 'GET', key, idOf(first))).status, 200);
    }
    assert.equal(verdictOf(await ask(gateway, 'GET', 'key of rival', idOf(first))), 'PAYMENT_UNKNOWN');
    assert.equal(bank.payments.length, 1);
  });
});

describe('a tenant that is removed', () => {
  test('is refused with 401, no other tenant can use its payments, and it continues them when it is configured again', async (t) => {
    const both = [client('shop'), client('rival')];
    const { bank, gateway, sections } = await start(t, { clients: both });
    const requestId = randomUUID();
    const first = await pay(gateway, 'rival', requestId);
    await gateway.reload({ ...sections, clients: [client('shop')] });
    const before = bank.requests.length;
    assert.equal((await ask(gateway, 'GET', 'rival', idOf(first))).status, 401);
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
  test('stays as long as it is active', async (t) => {
    const { bank, gateway } = await start(t);
    const other = await startBank(t, { name: 'two' });
    const [sandbox, second] = [{ baseUrl: bank.baseUrl }, { baseUrl: other.baseUrl }];
    const withoutIt = { environments: { second } };
    const says = refusal(/"sandbox" is active, .* first activate another one: penstock environment use NAME/);
    await assert.rejects(gateway.reload(withoutIt), says);
    assert.equal((await pay(gateway, undefined)).header('Penstock-Environment'), 'sandbox');
    await gateway.reload({ environments: { active: 'sandbox', sandbox, second } });
    const switched = { environment: 'second', reason: 'a test' };
    assert.equal((await callAdminApi(gateway, 'PUT', '/api/environments/active', switched)).status, 200);
    await gateway.reload(withoutIt);
    assert.equal((await pay(gateway, undefined)).header('Penstock-Environment'), 'second');
  });

  test('leaves payments whose requests are refused, and never sent to another bank, until it is configured again', async (t) => {
    const { bank: sandbox, startAnother } = await shareDatabase(t);
    const production = await startBank(t, { name: 'two' });
    const environments = {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl },
      production: { baseUrl: production.baseUrl },
    };
    const gateway = await startAnother({ environments });
    const first = await pay(gateway, undefined);
    const onlyProduction = { environments: { production: environments.production } };
    const switched = { environment: 'production', confirm: 'production', reason: 'a test' };
    assert.equal((await callAdminApi(gateway, 'PUT', '/api/environments/active', switched)).status, 200);
    await gateway.reload(onlyProduction);
    for (const instance of [gateway, await startAnother(onlyProduction)]) {
      for (const method of ['GET', 'DELETE'] as const) {
        const reply = await ask(instance, method, undefined, idOf(first));
        assert.deepEqual([reply.status, verdictOf(reply)], [503, 'STATE_UNAVAILABLE']);
      }
      assert.equal(
        verdictOf(await ask(instance, 'DELETE', undefined, 'never-recorded')),
        'ENVIRONMENT_MISMATCH',
      );
    }
    const sent = production.requests.filter(({ operation }) => operation !== undefined);
    assert.deepEqual(sent, [], 'only the pre-flight of the switch');
    await gateway.reload({ environments });
    assert.equal((await ask(gateway, 'DELETE', undefined, idOf(first))).status, 204);
  });
});

describe('a bank whose address changes', () => {
  async function startAndMove(t: TestContext) {
    const setting = await start(t);
    const other = await startBank(t, { name: 'two' });
    return { ...setting, other, moved: { environments: { sandbox: { baseUrl: other.baseUrl } } } };
  }

  test('is refused by a reload and by a start after its first payment, and nothing is sent there', async (t) => {
    const { bank, other, moved, gateway, startAnother } = await startAndMove(t);
    const first = await pay(gateway, undefined);
    const says = refusal(
      new RegExp(
        `environments.sandbox.baseUrl: payments were sent to ${bank.baseUrl}, and the configuration says ${other.baseUrl}; ` +
          `.*penstock environment moved sandbox --to ${other.baseUrl}; otherwise give the other bank another name`,
      ),
    );
    await assert.rejects(gateway.reload(moved), says);
    await assert.rejects(startAnother(moved), says);
    assert.equal((await ask(gateway, 'DELETE', undefined, idOf(first))).status, 204);
    assert.deepEqual(other.requests, []);
  });

  test('continues its payments at the new address after the command, on instances that reload in any order', async (t) => {
    const { bank, other, moved, gateway, sections, startAnother } = await startAndMove(t);
    const second = await startAnother(sections);
    other.nextPaymentId('same-id');
    await call(other.baseUrl, { method: 'GET', path: '/' });
    bank.nextPaymentId('same-id');
    const requestId = randomUUID();
    await pay(gateway, undefined, requestId);
    assert.equal((await ask(second, 'GET', undefined, 'same-id')).status, 200);
    await change(gateway, 'environments/sandbox/moved', other.baseUrl);
    await gateway.reload(moved);
    const before = other.requests.length;
    await ask(gateway, 'GET', undefined, 'same-id');
    assert.equal(other.requests.length, before + 1);
    assert.ok(isReplay(await pay(gateway, undefined, requestId)));
    assert.ok(isReplay(await pay(second, undefined, requestId)), 'the instance with the old configuration');
    assert.equal((await ask(second, 'GET', undefined, 'same-id')).status, 200);
    await assert.rejects(startAnother(sections), refusal(/environment moved sandbox/));
    await second.reload(moved);
  });

  test('can change freely until something was sent, also if only reads were', async (t) => {
    const { bank, other, moved, gateway } = await startAndMove(t);
    assert.equal((await ask(gateway, 'GET', undefined, 'unknown')).status, 404);
    await gateway.reload(moved);
    assert.equal((await pay(gateway, undefined)).status, 201);
    assert.deepEqual([bank.payments.length, other.payments.length], [0, 1]);
    const { status } = await callAdminApi(gateway, 'POST', '/api/environments/none/moved', {
      to: 'https://bank.example',
      reason: 'a test',
    });
    assert.equal(status, 404);
  });

  test('is another environment under another name, and leaves the payments of the former one', async (t) => {
    const { bank, other, gateway } = await startAndMove(t);
    const first = await pay(gateway, undefined);
    await gateway.reload({
      environments: {
        active: 'sandbox',
        sandbox: { baseUrl: bank.baseUrl },
        'bank-b': { baseUrl: other.baseUrl },
      },
    });
    assert.equal((await ask(gateway, 'DELETE', undefined, idOf(first))).status, 204);
    assert.deepEqual(other.requests, []);
  });

  test('may be that of another environment of a hub', async (t) => {
    const { bank, gateway } = await startAndMove(t);
    await pay(gateway, undefined);
    const baseUrl = bank.baseUrl;
    await gateway.reload({
      environments: {
        active: 'sandbox',
        sandbox: { baseUrl, headers: { 'X-BIC': 'BANKAEXX' } },
        'bank-b': { baseUrl, headers: { 'X-BIC': 'BANKBEXX' } },
      },
    });
    assert.equal((await pay(gateway, undefined)).status, 201);
  });
});

describe('an environment that is renamed', () => {
  test('stays the active one, and its payments continue', async (t) => {
    const other = await startBank(t, { name: 'other' });
    const { bank, gateway, sections } = await start(t, {});
    const { baseUrl } = bank;
    const before = { active: 'sandbox', sandbox: { baseUrl }, second: { baseUrl: other.baseUrl } };
    await gateway.reload({ ...sections, environments: before });
    const first = await pay(gateway, undefined);
    assert.equal(first.status, 201);

    await change(gateway, 'environments/sandbox/rename', 'bank-a');
    const after = { active: 'bank-a', 'bank-a': { baseUrl }, second: { baseUrl: other.baseUrl } };
    await gateway.reload({ ...sections, environments: after });
    const next = await pay(gateway, undefined);
    assert.deepEqual([next.status, next.header('Penstock-Environment')], [201, 'bank-a'], next.text);
    assert.equal((await ask(gateway, 'GET', undefined, idOf(first))).status, 200);
    assert.deepEqual([bank.payments.length, other.payments.length], [2, 0]);
  });

  test('cannot be configured under both names', async (t) => {
    const { bank, gateway } = await start(t);
    await change(gateway, 'environments/sandbox/rename', 'bank-a');
    const { baseUrl } = bank;
    const both = {
      environments: {
        active: 'sandbox',
        sandbox: { baseUrl },
        'bank-a': { baseUrl, headers: { 'X-BIC': 'BANKAEXX' } },
      },
    };
    await assert.rejects(
      gateway.reload(both),
      refusal(/"sandbox" and "bank-a" are names of one environment/),
    );
  });
});

describe('a configuration with several contradictions', () => {
  test('is refused with all of them at once, and nothing of it is stored', async (t) => {
    const { bank, gateway, sections } = await start(t, { clients: [client('shop'), client('till')] });
    await pay(gateway, 'shop');
    const other = await startBank(t, { name: 'two' });
    const wrong = {
      clients: [client('store', 'shop'), { ...client('till'), tenant: 'rival' }, client('new')],
      environments: { sandbox: { baseUrl: other.baseUrl }, 'bank-b': { baseUrl: bank.baseUrl } },
    };
    await assert.rejects(
      gateway.reload({ ...wrong, environments: { active: 'sandbox', ...wrong.environments } }),
      refusal(/rename shop store.*\n.*move-credential till rival.*\n.*environment moved sandbox/),
    );
    for (const name of ['store', 'new', 'rival']) await change(gateway, 'tenants/shop/rename', name); // it would be in use
    await change(gateway, 'environments/sandbox/rename', 'bank-b');
    await gateway.reload(sections);
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

describe('a database that cannot be reached', () => {
  test('at the start: requests are refused until the configuration has been compared, and served afterwards', async (t) => {
    const { bank, gateway: first, sections, startAnother } = await start(t, { clients: [client('shop')] });
    const payment = await pay(first, 'shop');
    let fault: ReturnType<typeof createFaultyDatabase> | undefined;
    const second = await startAnother(sections, (database) => {
      fault = createFaultyDatabase(database);
      fault.fail('before', /tenant_name/);
      return fault;
    });
    const reply = await ask(second, 'GET', 'shop', idOf(payment));
    assert.deepEqual([reply.status, verdictOf(reply)], [503, 'STATE_UNAVAILABLE']);
    assert.equal(verdictOf(await pay(second, 'shop')), 'STATE_UNAVAILABLE');
    fault?.recover();
    await until(
      10_000,
      'the configuration has been compared',
      async () => (await ask(second, 'GET', 'shop', idOf(payment))).status === 200,
    );
    assert.equal(bank.payments.length, 1);
  });

  test('at the start: all requests are refused with the cause if it turns out to contradict the configuration', async (t) => {
    const { bank, sections, gateway: first, startAnother } = await start(t, { clients: [client('shop')] });
    const requestId = randomUUID();
    await pay(first, 'shop', requestId);
    let fault: ReturnType<typeof createFaultyDatabase> | undefined;
    const renamed = { ...sections, clients: [client('store', 'shop')] };
    const second = await startAnother(renamed, (database) => {
      fault = createFaultyDatabase(database);
      fault.fail('before', /tenant_name/);
      return fault;
    });
    fault?.recover();
    await until(10_000, 'the contradiction is reported', async () => {
      const { text } = await call(second.adminUrl, { method: 'GET', path: '/health/ready' });
      return text.includes('penstock tenants rename shop store');
    });
    const reply = await pay(second, 'shop', requestId);
    assert.deepEqual([reply.status, verdictOf(reply)], [503, 'STATE_UNAVAILABLE']);
    assert.match(reply.text, /contradict/);
    assert.ok(!reply.text.includes('store'), 'the TPP does not see names of tenants');
    assert.match(second.logLines.join(''), /"level":"error".*tenants rename shop store/);
    assert.equal(bank.payments.length, 1);

    await change(first, 'tenants/shop/rename', 'store');
    await until(10_000, 'the command has resolved it', async () =>
      isReplay(await pay(second, 'shop', requestId)),
    );
    assert.equal(bank.payments.length, 1);
  });

  test('at a reload: it is refused, and the old configuration stays', async (t) => {
    const { sections, startAnother } = await shareDatabase(t);
    let fault: ReturnType<typeof createFaultyDatabase> | undefined;
    const gateway = await startAnother({ ...sections, clients: [client('shop')] }, (database) => {
      fault = createFaultyDatabase(database);
      return fault;
    });
    const next = { ...sections, clients: [client('shop'), client('rival')] };
    fault?.fail('before');
    await assert.rejects(gateway.reload(next), refusal(/reload again when \/health\/ready returns 200/));
    fault?.recover();
    await gateway.reload(next);
  });

  test('when an address is to be recorded: nothing is sent', async (t) => {
    const { bank, sections, startAnother } = await shareDatabase(t);
    let fault: ReturnType<typeof createFaultyDatabase> | undefined;
    const gateway = await startAnother(sections, (database) => {
      fault = createFaultyDatabase(database);
      return fault;
    });
    fault?.fail('before', /environment_address/);
    assert.equal(verdictOf(await pay(gateway, undefined)), 'STATE_UNAVAILABLE');
    assert.deepEqual(bank.payments, []);
    fault?.recover();
    assert.equal((await pay(gateway, undefined)).status, 201);
    const recordings = () =>
      (fault?.statements ?? []).filter((text) => text.includes('INTO environment_address'));
    const { length } = recordings();
    assert.equal((await pay(gateway, undefined)).status, 201);
    assert.equal(recordings().length, length, 'once for each process and environment');
  });
});
