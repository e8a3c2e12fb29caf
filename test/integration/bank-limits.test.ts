/**
 * Which calls pause after the bank has refused others: by 429 or by 503 with `Retry-After`, for a read, a status read or an
 * initiation, for one or two payments, products and TPPs, on one or two instances.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { createMemoryState } from '../../src/state/memory.ts';
import { type Call, call, jsonOf, type Reply } from '../kit/call.ts';
import { lazy } from '../kit/fleet-redis.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

const life = scopeOfAllTests();
const redis = lazy(() => sharedRedisUrl(life));

const products = { transfers: 'sepa-credit-transfers', instant: 'instant-sepa-credit-transfers' } as const;
type Product = keyof typeof products;

/** Longer than any call of these tests may wait, so that a paused call is refused at once. */
const retryAfter = 60;

/** `status shop transfers 1`: what is called, by which TPP, for which product and which of its payments. */
type CallText = string;

/** All calls that a test sends after the evidence: `-` if it is paused. */
const probes: readonly CallText[] = [
  ...[
    'status shop transfers 1',
    'status shop transfers 2',
    'status shop transfers 3',
    'status shop instant 1',
  ],
  ...['status rival transfers 1', 'read shop transfers 1', 'read rival transfers 1'],
  ...['initiation shop transfers', 'initiation shop instant', 'initiation rival transfers'],
];

interface Row {
  /** The bank refuses these calls; those with `+` it answers. */
  readonly evidence: readonly CallText[];
  /** The paused calls, and the scope that their answer names. */
  readonly paused: Readonly<Record<CallText, string>>;
}

const rows: Readonly<Record<string, Row>> = {
  'one payment': {
    evidence: ['status shop transfers 1'],
    paused: { 'status shop transfers 1': 'payment' },
  },
  'one payment, three times by other calls': {
    evidence: ['read shop transfers 1', '+ status shop transfers 1', '+ status shop transfers 2'],
    paused: { 'read shop transfers 1': 'payment' },
  },
  'an initiation': {
    evidence: ['initiation shop transfers'],
    paused: { 'initiation shop transfers': 'product' },
  },
  'two payments of one product': {
    evidence: ['status shop transfers 1', 'status shop transfers 2'],
    paused: {
      'status shop transfers 1': 'product',
      'status shop transfers 2': 'product',
      'status shop transfers 3': 'product',
    },
  },
  'two payments, alternating with successes': {
    evidence: ['status shop transfers 1', '+ status shop transfers 3', 'status shop transfers 2'],
    paused: { 'status shop transfers 1': 'payment', 'status shop transfers 2': 'payment' },
  },
  'two products': {
    evidence: ['status shop transfers 1', 'status shop instant 1'],
    paused: {
      'status shop transfers 1': 'tenant',
      'status shop transfers 2': 'tenant',
      'status shop transfers 3': 'tenant',
      'status shop instant 1': 'tenant',
    },
  },
  'initiations of two products': {
    evidence: ['initiation shop transfers', 'initiation shop instant'],
    paused: { 'initiation shop transfers': 'tenant', 'initiation shop instant': 'tenant' },
  },
  'two TPPs': {
    evidence: ['status shop transfers 1', 'status rival transfers 1'],
    paused: {
      'status shop transfers 1': 'lane',
      'status shop transfers 2': 'lane',
      'status shop transfers 3': 'lane',
      'status shop instant 1': 'lane',
      'status rival transfers 1': 'lane',
    },
  },
  'a status read of one TPP and an initiation of another': {
    evidence: ['status shop transfers 1', 'initiation rival transfers'],
    paused: Object.fromEntries(probes.map((probe) => [probe, 'environment'])),
  },
};

interface Setup {
  readonly bank: SimulatedBank;
  /** Those to which the evidence is sent in turn. */
  readonly gateways: readonly GatewayUnderTest[];
  /** Waits until each instance has received what the others have told it so far. */
  settle(): Promise<void>;
  send(gateway: GatewayUnderTest, text: CallText): Promise<Reply>;
}

async function start(t: TestContext, instances: number): Promise<Setup> {
  const bank = await startBank(t);
  const sections = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    clients: clientSettings().map((client) => ({ ...client, environments: ['sandbox'] })),
  };
  const newState = instances > 1 ? redisStateFactory(await redis()) : () => createMemoryState();
  const states = Array.from({ length: instances }, () => newState());
  const gateways: GatewayUnderTest[] = [];
  for (const state of states) gateways.push(await startGateway(t, sections, state));
  const [first = assert.fail()] = gateways;

  // Messages arrive in the order in which a connection has sent them, and reach the listeners in the order of their subscriptions.
  const received = states.map(({ pubsub }) => {
    const texts = new Set<string>();
    pubsub.subscribe('limit:sandbox', (message) => texts.add(message));
    return texts;
  });
  async function settle(): Promise<void> {
    const markers = states.map(() => randomUUID());
    for (const [index, { pubsub }] of states.entries())
      await pubsub.publish('limit:sandbox', markers[index] ?? '');
    await until(10_000, 'all messages have arrived', () =>
      received.every((texts) => markers.every((marker) => texts.has(marker))),
    );
  }

  const payments = new Map<string, string>();
  const send = (gateway: GatewayUnderTest, text: CallText): Promise<Reply> => {
    const [what, client, product, number] = text.split(' ') as [string, ClientName, Product, string?];
    const path = `/berlingroup/v1/payments/${products[product]}`;
    const payment = `${path}/${payments.get([client, product, number].join(' '))}`;
    const key = ['X-API-Key', apiKeyOf(client)] as const;
    const read = { method: 'GET', headers: [key, ['Cache-Control', 'no-cache'] as const] };
    const calls: Readonly<Record<string, Call>> = {
      initiation: { ...initiation, path, headers: [...initiation.headers, key] },
      read: { ...read, path: payment },
      status: { ...read, path: `${payment}/status` },
    };
    return call(gateway.url, calls[what] ?? assert.fail(text));
  };
  for (const owner of ['shop transfers', 'shop instant', 'rival transfers'])
    for (const number of [1, 2, 3]) {
      const initiated = await send(first, `initiation ${owner}`);
      payments.set(`${owner} ${number}`, String(jsonOf(initiated).paymentId));
    }
  return { bank, gateways, send, settle };
}

/** Sends the evidence, to the gateways in turn. */
async function sendEvidence(
  { bank, gateways, send, settle }: Setup,
  evidence: readonly CallText[],
  status: number,
) {
  for (const [index, text] of evidence.entries()) {
    const gateway = gateways[index % gateways.length] ?? assert.fail();
    const isAnswered = text.startsWith('+ ');
    const headers = { 'Retry-After': `${retryAfter}` };
    if (!isAnswered) bank.injectFault({ name: 'status', status, headers }, { times: 1 });
    const reply = await send(gateway, text.replace('+ ', ''));
    assert.equal(reply.status, isAnswered ? 200 : status);
    assert.equal(reply.header('Penstock-Error'), undefined);
    await settle();
  }
}

/** The scope of the pause in an answer, or `sent` if the bank got the call. */
function verdictOf(reply: Reply): string {
  if (reply.header('Penstock-Error') === undefined) return 'sent';
  assert.equal(reply.header('Penstock-Error'), 'QUEUE_TIMEOUT');
  const [, scope, seconds] = /^"bank-(\w+)";r=0;t=(\d+)$/.exec(reply.header('RateLimit') ?? '') ?? [];
  assert.equal(seconds, reply.header('Retry-After'));
  assert.ok(Number(seconds) <= retryAfter && Number(seconds) > retryAfter - 30);
  return scope ?? 'no scope';
}

describe('after the bank has refused calls', { concurrency: 4 }, () => {
  for (const instances of [1, 2])
    for (const status of instances === 1 ? [429, 503] : [429])
      for (const [title, { evidence, paused }] of Object.entries(rows))
        test(`for ${title}, by ${status}, ${instances === 1 ? 'one instance pauses' : 'two instances pause'} what this may concern`, {
          skip: instances > 1 && skipWithoutRedis,
        }, async (t) => {
          const setup = await start(t, instances);
          await sendEvidence(setup, evidence, status);
          for (const [index, gateway] of setup.gateways.entries()) {
            // The pause of a payment is known only to the instance that has sent the refused call.
            const isKnown = (probe: CallText) =>
              paused[probe] !== 'payment' || evidence.indexOf(probe) % instances === index;
            const expected = probes.map((probe) => (isKnown(probe) && paused[probe]) || 'sent');
            const verdicts = [];
            for (const probe of probes) verdicts.push(verdictOf(await setup.send(gateway, probe)));
            assert.deepEqual(
              verdicts.map((verdict, at) => `${probes[at]}: ${verdict}`),
              expected.map((verdict, at) => `${probes[at]}: ${verdict}`),
            );
          }
        });
});
