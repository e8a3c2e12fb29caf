/** The cache is never behind what was shown: two instances on one Redis, and the round trips that this costs. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { type Call, call, jsonOf } from '../kit/call.ts';
import { createCountingState } from '../kit/counting-state.ts';
import { startGateway } from '../kit/gateway.ts';
import { redisStateFactory, sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { transfersPath } from '../kit/request.ts';
import { type StubRequest, startStubBank, statusResponse } from '../kit/stub-bank.ts';

const paymentRead = { method: 'GET', path: `${transfersPath}/a-payment` } as const;
const statusRead = { method: 'GET', path: `${paymentRead.path}/status` } as const;
const authorisationRead = { method: 'GET', path: `${paymentRead.path}/authorisations/one` } as const;

const json = [['Content-Type', 'application/json']] as const;
const isOfTheCache = (operation: string) => / status:/.test(operation) && !operation.endsWith(':secret');

/** Two instances on one Redis, with minutes to live for every status, and a bank that says what the test sets. */
async function startPair(t: TestContext) {
  const says = { transactionStatus: 'RCVD', scaStatus: 'started' };
  const bank = await startStubBank(t, ({ path }: StubRequest) => {
    if (path.endsWith('/authorisations/one'))
      return { headers: json, body: JSON.stringify({ scaStatus: says.scaStatus }) };
    return statusResponse(says.transactionStatus);
  });
  const url = await sharedRedisUrl(t);
  const prefix = `test-${randomUUID()}:`;
  const sections = {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } },
    state: { redis: url, prefix },
    statusCache: { pendingTtl: '1min', pendingTtlMax: '1min' },
  };
  const createState = redisStateFactory(url, prefix);
  const counting = createCountingState(createState(), isOfTheCache);
  const here = await startGateway(t, sections, counting);
  const there = await startGateway(t, sections, createState());
  const statusAt = async (gateway: { readonly url: string }) => {
    const reply = await call(gateway.url, statusRead);
    return [jsonOf(reply).transactionStatus, reply.header('Cache-Status')?.split('; ttl')[0]];
  };
  /** Sends a request here, and returns the operations on the cached payment. */
  const operationsOf = async (request: Call) => {
    counting.reset();
    assert.ok((await call(here.url, request)).status <= 201);
    return counting.roundTrips.map((trip) => trip.map((operation) => operation.split(' ')[0]));
  };
  return { says, here, there, statusAt, operationsOf };
}

const [hit, miss] = ['penstock; hit', 'penstock; fwd=miss'];

describe('two instances on one Redis', { skip: skipWithoutRedis }, () => {
  test('serve no cached status that is older than a status that the other instance has shown with the payment', async (t) => {
    const { says, here, there, statusAt, operationsOf } = await startPair(t);
    await call(there.url, statusRead);
    assert.deepEqual(await operationsOf(paymentRead), [['read']], 'the status is the cached one');
    assert.deepEqual(await statusAt(there), ['RCVD', hit]);

    says.transactionStatus = 'ACSC';
    assert.deepEqual(await operationsOf(paymentRead), [['read'], ['replace']], 'the status has changed');
    assert.deepEqual(await statusAt(there), ['ACSC', miss]);
    assert.deepEqual(await statusAt(here), ['ACSC', hit]);
    assert.deepEqual(await operationsOf(paymentRead), [['read']]);
  });

  test('serve no cached status from before the other instance has shown the end of the authorisation', async (t) => {
    const { says, there, statusAt, operationsOf } = await startPair(t);
    await call(there.url, statusRead);
    assert.deepEqual(await operationsOf(authorisationRead), []);
    assert.deepEqual(await statusAt(there), ['RCVD', hit]);

    says.scaStatus = 'finalised';
    assert.deepEqual(await operationsOf(authorisationRead), [['read'], ['replace']]);
    assert.deepEqual(await statusAt(there), ['RCVD', miss]);
    assert.deepEqual(await operationsOf(authorisationRead), [['read']]);
    assert.deepEqual(await statusAt(there), ['RCVD', hit]);
  });

  test('read Redis once for a cached status', async (t) => {
    const { there, operationsOf } = await startPair(t);
    await call(there.url, statusRead);
    assert.deepEqual(await operationsOf(statusRead), [['read']]);
  });
});
