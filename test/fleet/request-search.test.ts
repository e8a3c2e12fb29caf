/** Every instance finds the requests of all instances, shows the same figures and errors, and keeps those of a killed one. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, callOnce, jsonOf } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { startBank } from '../kit/gateway.ts';
import { type GatewayProcess, startGatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** What the tests read of a found request. */
interface FoundRequest {
  readonly xRequestId: string;
  readonly instance: string;
  readonly status: number;
  readonly tenant: string | null;
}

interface FoundPage {
  readonly requests: readonly FoundRequest[];
  readonly searchedFrom: string;
  readonly complete: boolean;
  readonly notStored: number;
}

async function startInstances(life: TestScope, count: number) {
  const bank = await startBank(life);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    clients: clientSettings().map(({ environments, ...client }) => client),
    shaping: { expectedInstances: count },
    state: { postgres: await newMigratedPostgres() },
  };
  const start = () => startGatewayProcess(life, sections);
  const instances = await Promise.all(Array.from({ length: count }, start));
  const send = (instance: GatewayProcess, client: ClientName, { headers = [], ...rest }: Call) =>
    callOnce(instance.url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf(client)]] });
  for (const instance of instances)
    await until(20_000, 'the instance executes a payment', async () => {
      const reply = await send(instance, 'rival', { ...initiation, requestId: randomUUID() });
      return reply.status === 201;
    });
  return { instances, send };
}

const read = async (instance: GatewayProcess, path: string) => {
  const reply = await callAdminApi(instance, 'GET', path);
  assert.equal(reply.status, 200, reply.text);
  return JSON.parse(reply.text);
};

const search = (instance: GatewayProcess, query: Readonly<Record<string, string>>): Promise<FoundPage> =>
  read(instance, `/api/search?${new URLSearchParams(query)}`);

const nameOf = (instance: GatewayProcess) => String(instance.logged()[0]?.instance);

/** Waits until the first instance shows what is expected. @returns what each instance shows then */
async function shownBy<Shown>(
  instances: readonly GatewayProcess[],
  readFrom: (instance: GatewayProcess) => Promise<Shown>,
  isExpected: (shown: Shown) => boolean,
): Promise<readonly Shown[]> {
  for (const instance of instances)
    await until(20_000, 'the records are stored', async () => isExpected(await readFrom(instance)));
  return Promise.all(instances.map(readFrom));
}

function assertAllEqual(all: readonly unknown[]): void {
  for (const each of all) assert.deepEqual(each, all[0]);
}

const count = 3;

describe('three instances on PostgreSQL, without Redis', { skip: skipWithoutPostgres }, () => {
  test('find, explain and count the requests of all of them in the same way', async (t) => {
    const { instances, send } = await startInstances(t, count);
    const [one = assert.fail()] = instances;
    const paid = await send(one, 'shop', { ...initiation, requestId: randomUUID() });
    const paymentId = String(jsonOf(paid).paymentId);
    const ids: string[] = [];
    for (const instance of instances) {
      const requestId = randomUUID();
      ids.push(requestId);
      const path = `${transfersPath}/${paymentId}/status`;
      assert.equal((await send(instance, 'shop', { method: 'GET', path, requestId })).status, 200);
      const unknown = `${transfersPath}/unknown/status`;
      await send(instance, 'shop', { method: 'GET', path: unknown, requestId: randomUUID() });
    }

    const ofPayment = await shownBy(
      instances,
      (instance) => search(instance, { payment: paymentId }),
      ({ requests }) => requests.length === count + 1,
    );
    assertAllEqual(ofPayment.map(({ requests }) => requests));
    const [found = assert.fail()] = ofPayment;
    assert.deepEqual(found.requests.map(({ xRequestId }) => xRequestId).toReversed(), [
      String(paid.header('X-Request-ID')),
      ...ids,
    ]);
    assert.deepEqual(
      found.requests
        .slice(0, -1)
        .map(({ instance }) => instance)
        .toReversed(),
      instances.map(nameOf),
    );
    assert.deepEqual([found.complete, found.notStored], [true, 0]);

    for (const id of ids) {
      const explained = await Promise.all(
        instances.map((instance) => read(instance, `/api/decisions/${id.toUpperCase()}`)),
      );
      assertAllEqual(explained);
      assert.equal(explained[0]?.length, 1);
      const commands = instances.map((instance) => instance.run('explain', id));
      for (const command of commands) assert.equal(await command.exitCode(), 0, command.stderr());
      assertAllEqual(commands.map((command) => command.stdout()));
    }

    for (const query of [
      { error: 'any', tenant: 'shop' },
      { error: 'PAYMENT_UNKNOWN' },
      { tenant: 'shop' },
    ]) {
      const pages = await Promise.all(instances.map((instance) => search(instance, query)));
      assertAllEqual(pages.map(({ requests }) => requests));
      assert.ok((pages[0]?.requests.length ?? 0) >= count, JSON.stringify(query));
      assert.ok(pages[0]?.requests.every(({ tenant }) => !('tenant' in query) || tenant === 'shop'));
    }
    const errors = await shownBy(
      instances,
      (instance) => read(instance, '/api/errors'),
      (shown) => shown.find(({ code }: { code: string }) => code === 'PAYMENT_UNKNOWN')?.count === count,
    );
    assertAllEqual(errors);
    const requestsIn = (history: { points: readonly { requests: number }[] }) =>
      history.points.reduce((sum, { requests }) => sum + requests, 0);
    const { requests } = await search(one, { limit: '500' });
    const figures = await shownBy(
      instances,
      (instance) => read(instance, '/api/history'),
      (history) => requestsIn(history) >= requests.length,
    );
    assertAllEqual(figures);
    assert.equal(requestsIn(figures[0]), requests.length);
  });

  test('keep the records of an instance that was killed', async (t) => {
    const { instances, send } = await startInstances(t, count);
    const [killed = assert.fail(), ...others] = instances;
    const requestId = randomUUID();
    const path = `${transfersPath}/unknown/status`;
    await send(killed, 'shop', { method: 'GET', path, requestId });
    const [other = assert.fail()] = others;
    const isFound = async () => (await search(other, { requestId })).requests.length === 1;
    await until(20_000, 'another instance finds the request', isFound);

    await killed.stop('SIGKILL');
    for (const instance of others) {
      const { requests } = await search(instance, { requestId });
      assert.deepEqual(
        requests.map(({ instance, status }) => [instance, status]),
        [[nameOf(killed), 404]],
      );
    }
    const command = other.run('search', '--tenant', 'shop', '--error', 'any');
    assert.equal(await command.exitCode(), 0, command.stderr());
    assert.match(command.stdout(), new RegExp(`404 PAYMENT_UNKNOWN .*${requestId}  ${nameOf(killed)}\n`));
  });
});
