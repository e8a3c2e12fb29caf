/** Messages of subscriptions on a real PostgreSQL: several processes, endpoints of all kinds, kill -9, and a restart of the database. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import {
  createSubscriptionStore,
  type SubscriptionStore,
} from '../../src/notifications/subscription-store.ts';
import { connectPostgres } from '../../src/store/postgres.ts';
import { createSubscriptionTable } from '../../src/store/subscriptions.ts';
import { startChildReaper } from '../kit/child-reaper.ts';
import { migrateNew, newMigratedPostgres } from '../kit/database.ts';
import { skipWithoutPostgres, startPostgres } from '../kit/postgres.ts';
import { subscriptionSince } from '../kit/subscription.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../kit/webhook-receiver.ts';
import type { WorkerSettings } from '../kit/webhook-worker.ts';
import { until } from '../kit/within.ts';

const tenant = 'tenant';
const secret = `whsec_${randomBytes(32).toString('base64')}`;
const perEndpoint = 30;

describe('webhooks on PostgreSQL', { skip: skipWithoutPostgres }, () => {
  test('every message is delivered, repeats have the same id, and no forbidden address is connected to, although each process is killed and the database restarts', async (t) => {
    const postgres = await startPostgres(t);
    await migrateNew(postgres.url);
    const endpoints = await startEndpoints(t);
    const store = storeIn(t, postgres.url);

    const settings: WorkerSettings = {
      postgres: postgres.url,
      tenant,
      secret,
      urls: endpoints.map(({ url }) => new URL(url).origin),
      names: {
        'private.example': [['10.0.0.1']],
        'loopback.example': [['127.0.0.1']],
        'changing.example': [['127.0.0.1', '8.8.8.8'], ['::ffff:7f00:1'], ['64:ff9b::7f00:1'], ['0.0.0.0']],
      },
      timeoutMs: 2_000,
    };
    for (const { name, url } of endpoints) {
      const indexes = Array.from({ length: perEndpoint }, (_, index) => index);
      await Promise.all(indexes.map((index) => storeWithMessage(store, `${name}-${index}`, url)));
    }

    let workers = await Promise.all([startWorker(t, settings), startWorker(t, settings)]);
    for (let round = 0; round < 3; round++) {
      const [killed, ...others] = workers;
      const before = countAll(endpoints);
      await until(30_000, 'messages arrive', () => countAll(endpoints) > before || round > 0);
      killed?.kill('SIGKILL');
      workers = [...others, await startWorker(t, settings)];
      if (round === 1) {
        await postgres.kill();
        await postgres.restart();
      }
    }

    const reachable = endpoints.filter(({ accepts }) => accepts);
    await until(
      60_000,
      () =>
        `all are delivered: ${reachable.map((each) => `${each.name} ${acceptedBy(each).size}`).join(', ')}`,
      () => reachable.every((endpoint) => acceptedBy(endpoint).size === perEndpoint),
    );
    for (const endpoint of endpoints) assertOneIdPerPayment(endpoint);
    const forbidden = endpoints.filter(({ isForbidden }) => isForbidden);
    assert.deepEqual(
      forbidden.map(({ receiver }) => receiver.connections()),
      forbidden.map(() => 0),
    );
    const gone = endpoints.find(({ name }) => name === 'gone');
    await until(30_000, 'the endpoint that answers 410 gets no further messages', async () => {
      const left = await Promise.all(
        Array.from({ length: perEndpoint }, (_, index) => store.read(`gone-${index}`)),
      );
      return left.every((record) => record === undefined);
    });
    assert.ok(gone);
    for (const { name } of reachable)
      await until(30_000, `the subscriptions of ${name} have ended`, async () => {
        const left = await Promise.all(
          Array.from({ length: perEndpoint }, (_, index) => store.read(`${name}-${index}`)),
        );
        return left.every((record) => record === undefined);
      });
  });

  test('a message that a killed process was sending is sent by another one, under the same id', async (t) => {
    const postgres = await newMigratedPostgres();
    const receiver = await startWebhookReceiver(t);
    receiver.answerWith((response, _received, number) => {
      if (number > 1) response.writeHead(204).end(); // the first attempt hangs
    });
    const store = storeIn(t, postgres);
    const url = `http://127.0.0.1:${receiver.port}/`;
    const settings = {
      postgres,
      tenant,
      secret,
      urls: [url],
      names: {},
      timeoutMs: 60_000,
    };
    const first = await startWorker(t, settings);
    await storeWithMessage(store, 'payment', url);
    await until(20_000, 'the first process sends it', () => receiver.received.length === 1);
    await startWorker(t, settings);
    first.kill('SIGKILL');
    await until(20_000, 'the second process sends it', () => receiver.received.length === 2);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    assert.equal(ids[0], ids[1]);
    await until(20_000, 'the subscription has ended', async () => !(await store.read('payment')));
  });
});

interface Endpoint {
  readonly name: string;
  readonly url: string;
  readonly receiver: WebhookReceiver;
  /** Whether it accepts all messages in the end. */
  readonly accepts: boolean;
  readonly isForbidden: boolean;
  /** The number of attempts that it does not accept at first. */
  readonly refusedFirst: number;
}

async function startEndpoints(t: TestScope): Promise<readonly Endpoint[]> {
  const kinds = [
    { name: 'works', accepts: true },
    { name: 'fails-first', accepts: true, refusedFirst: 20, answer: 503 },
    { name: 'hangs-first', accepts: true, refusedFirst: 4, answer: 0 },
    { name: 'redirects', answer: 302 },
    { name: 'gone', answer: 410 },
    { name: 'fails', answer: 500 },
    { name: 'private', host: 'private.example', isForbidden: true },
    { name: 'loopback', host: 'loopback.example', isForbidden: true },
    { name: 'changing', host: 'changing.example', isForbidden: true },
  ];
  return Promise.all(
    kinds.map(
      async ({ name, host, accepts = false, isForbidden = false, refusedFirst = 0, answer = 204 }) => {
        const receiver = await startWebhookReceiver(t);
        receiver.answerWith((response, _received, number) => {
          if (accepts && number > refusedFirst) response.writeHead(204).end();
          else if (answer > 0) response.writeHead(answer, { location: 'http://127.0.0.1/' }).end();
        });
        const url = host ? `https://${host}:${receiver.port}/` : `http://127.0.0.1:${receiver.port}/`;
        return { name, url, receiver, accepts, isForbidden, refusedFirst };
      },
    ),
  );
}

const countAll = (endpoints: readonly Endpoint[]) =>
  endpoints.reduce((sum, { receiver }) => sum + receiver.received.length, 0);

/** The payments whose message the endpoint has accepted. Their signatures are checked. */
function acceptedBy({ receiver, refusedFirst }: Endpoint): ReadonlySet<string> {
  return new Set(receiver.received.slice(refusedFirst).map(({ headers, body }) => paymentIn(headers, body)));
}

function paymentIn(headers: WebhookReceiver['received'][number]['headers'], body: string): string {
  const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const message: unknown = new Webhook(secret).verify(body, fields);
  assert.ok(typeof message === 'object' && message !== null && 'paymentId' in message);
  return String(message.paymentId);
}

function assertOneIdPerPayment({ receiver }: Endpoint): void {
  const ids = new Map<string, string>();
  for (const { headers, body } of receiver.received) {
    const payment = paymentIn(headers, body);
    const id = String(headers['webhook-id']);
    assert.equal(headers['x-request-id'], id);
    assert.equal(ids.get(payment) ?? id, id);
    ids.set(payment, id);
  }
}

function storeIn(t: TestScope, postgres: string): SubscriptionStore {
  const database = connectPostgres(postgres);
  t.after(() => database.close());
  return createSubscriptionStore(createSubscriptionTable(database));
}

async function storeWithMessage(store: SubscriptionStore, paymentId: string, url: string): Promise<void> {
  const nowMs = Date.now();
  const subscription = subscriptionSince(nowMs, {
    id: randomUUID(),
    tenant,
    paymentId,
    url,
    sequence: 1,
    status: { hash: 'hash', code: 'ACCC', finality: 'final', since: nowMs },
    message: {
      id: randomUUID(),
      sequence: 1,
      transactionStatus: 'ACCC',
      final: true,
      since: nowMs,
      attempts: 0,
      failedAttempts: 0,
    },
  });
  await store.replace(paymentId, () => ({ subscription, delivery: { inMs: 0 } }));
}

async function startWorker(t: TestScope, settings: WorkerSettings): Promise<ChildProcess> {
  const program = new URL('../kit/webhook-worker.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  startChildReaper(child);
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}
