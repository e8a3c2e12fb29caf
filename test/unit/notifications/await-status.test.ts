/** Waiting reads, with a poller and a cache that the test controls. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { awaitStatus } from '../../../src/notifications/await-status.ts';
import { createOpenListeners } from '../../../src/notifications/open-listeners.ts';
import type { StatusListener } from '../../../src/notifications/poller.ts';
import { type HeaderFields, headerValues } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { operation } from './status-read.ts';

function start(t: TestContext, headers: HeaderFields = []) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const bank: { code: string; status: number; error?: GatewayError } = { code: 'ACTC', status: 200 };
  const reads: RoutedRequest[] = [];
  const events: RequestEvent[] = [];
  const openListeners = createOpenListeners(10);
  let isCurrent = true;
  let listener: StatusListener | undefined;
  const stage = awaitStatus({
    statuses: {
      enabled: true,
      cacheUseOf: () => ({ isBypassed: false, mayWait: true, mayStream: true }),
      keyOf: () => ({ tenantId: 'shop', paymentKey: 'status:payment' }),
      shownBy: async (_, { body }) => ({ hash: String(body), code: String(body), finality: 'pending' }),
      recorded: () => assert.fail('the poller reads it'),
      isCurrent: async () => isCurrent,
    },
    poller: {
      listen(added) {
        listener = added;
        return () => {
          listener = undefined;
        };
      },
    },
    openListeners,
    settings: { maxWait: 55_000, maxWaiting: 10 },
    metrics: { increment() {} },
    onReadEvent() {},
  });
  const next = async (request: RoutedRequest): Promise<PisResponse> => {
    reads.push(request);
    if (bank.error) throw bank.error;
    const { status, code } = bank;
    return { status, headers, body: Buffer.from(code), servedFrom: 'bank', environment: 'sandbox' };
  };
  const arrivedAtMs = performance.now();
  const request: RoutedRequest = {
    operation,
    client: { name: 'shop', tenant: 'shop', environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    mayListen: true,
    headers: [
      ['Prefer', 'wait=50'],
      ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'],
    ],
    body: Buffer.alloc(0),
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + 10_000,
    recordEvent: (event) => events.push(event),
    environment: { name: 'sandbox', origin: 'http://127.0.0.1:9', basePath: '', standardVersion: '1.3.11' },
  };
  const settle = async () => {
    for (let turns = 0; turns < 5; turns++) await setImmediate();
  };
  return {
    bank,
    reads,
    events,
    openListeners,
    request,
    settle,
    response: stage(request, next),
    outdate() {
      isCurrent = false;
    },
    notify: () => listener?.onChange(),
    isListening: () => listener !== undefined,
  };
}

const outcomeOf = ([event]: readonly RequestEvent[]) => (event?.what === 'wait' ? event.outcome : undefined);

describe('a read that waits', () => {
  test('is read again for each message about a change, and answered when the status is another one', async (t) => {
    const { bank, reads, events, response, notify, settle, request, isListening } = start(t);
    await settle();
    notify();
    await settle();
    assert.equal(reads.length, 2);
    bank.code = 'ACSC';
    notify();

    assert.equal(String((await response).body), 'ACSC');
    assert.equal(outcomeOf(events), 'changed');
    assert.ok((request.waitedMs ?? -1) >= 0);
    assert.equal(isListening(), false);
    const [, again] = reads;
    assert.ok(again && again !== request && again.arrivedAtMs >= request.arrivedAtMs);
    assert.notEqual(again.requestId, request.requestId);
    assert.deepEqual(again.headers, [['X-Request-ID', again.requestId]]);
  });

  test('does not ask the bank at its end, unless somebody has seen another status', async (t) => {
    const first = start(t);
    await first.settle();
    t.mock.timers.tick(50_000);
    assert.equal(String((await first.response).body), 'ACTC');
    assert.equal(first.reads.length, 1);
    assert.equal(outcomeOf(first.events), 'unchanged');
    t.mock.timers.reset();

    const second = start(t);
    await second.settle();
    second.bank.code = 'ACSC'; // the message about the change was lost
    second.outdate();
    t.mock.timers.tick(50_000);
    assert.equal(String((await second.response).body), 'ACSC');
  });

  test('has an age at its end, even if that of the bank was malformed', async (t) => {
    const { settle, response } = start(t, [['Age', 'unknown']]);
    await settle();
    t.mock.timers.tick(50_000);
    const { headers } = await response;
    assert.match(headerValues(headers, 'age').join(), /^\d+$/);
  });

  test('continues after a failed read, and is answered with a refusal of the bank', async (t) => {
    const { bank, events, response, notify, settle, isListening } = start(t);
    await settle();
    bank.error = new GatewayError('QUEUE_TIMEOUT', 'too late');
    notify();
    await settle();
    delete bank.error;
    bank.status = 503;
    notify();
    await settle();
    assert.ok(isListening());
    bank.status = 401;
    notify();
    assert.equal((await response).status, 401);
    assert.equal(outcomeOf(events), 'refused');
  });

  test('is answered at once when the gateway drains', async (t) => {
    const { openListeners, events, response, settle } = start(t);
    await settle();
    openListeners.drain();
    assert.equal((await response).status, 200);
    assert.equal(outcomeOf(events), 'drained');
    assert.equal(openListeners.count('wait'), 0);
  });
});
