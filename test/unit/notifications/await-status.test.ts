/** Waiting reads, with a poller and a cache that the test controls. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { awaitStatus } from '../../../src/notifications/await-status.ts';
import type { StatusListener } from '../../../src/notifications/poller.ts';
import { createStatusListeners } from '../../../src/notifications/status-listeners.ts';
import { type HeaderFields, headerValues } from '../../../src/pis/headers.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import { environmentOf } from '../../kit/environment.ts';
import { operation } from './status-read.ts';

/** A body that shows no status. */
const maintenance = 'maintenance';
const tagOf = (code: string) => `W/"penstock-${code.padEnd(22, '-')}"`;
const showing = (code: string): Pick<Bank, 'code' | 'headers'> => ({
  code,
  headers: [['ETag', tagOf(code)]],
});

interface Bank {
  code: string;
  status: number;
  error?: GatewayError;
  headers: HeaderFields;
  servedFrom: PisResponse['servedFrom'];
}

interface Options {
  readonly maxWaiting?: number;
  /** Whether the gateway signs its requests. */
  readonly signs?: boolean;
}

function start(
  t: TestContext,
  fields: HeaderFields = [],
  first: Partial<Bank> = {},
  { maxWaiting = 10, signs = false }: Options = {},
) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const bank: Bank = { code: 'ACTC', status: 200, headers: [], servedFrom: 'bank', ...first };
  const reads: RoutedRequest[] = [];
  const events: RequestEvent[] = [];
  const statusListeners = createStatusListeners(10);
  const permits: string[] = [];
  let arePermitsGranted = true;
  let isCurrent = true;
  let listener: StatusListener | undefined;
  const stage = awaitStatus({
    statuses: {
      enabled: true,
      cacheUseOf(headers) {
        const isBypassed = headerValues(headers, 'signature').length > 0;
        return { isBypassed, mayWait: !isBypassed, mayStream: !isBypassed };
      },
      keyOf: () => ({ tenantId: 'shop', paymentKey: 'status:payment' }),
      async shownBy(_, { body }) {
        const text = String(body);
        return { hash: text, code: text === maintenance ? undefined : text, finality: 'pending' };
      },
      recorded: () => assert.fail('the poller reads it'),
      isCurrent: async () => isCurrent,
      expire: () => assert.fail(),
    },
    poller: {
      listen(added) {
        listener = added;
        return () => {
          listener = undefined;
        };
      },
    },
    statusListeners,
    settings: { maxWait: 55_000, maxWaiting },
    signs: () => signs,
    budget: {
      async take({ urgency }) {
        permits.push(urgency);
        return arePermitsGranted;
      },
    },
    metrics: { increment() {} },
    onReadEvent() {},
  });
  const next = async (request: RoutedRequest): Promise<PisResponse> => {
    await request.beforeCall?.();
    reads.push(request);
    if (bank.error) throw bank.error;
    const { status, code, headers, servedFrom } = bank;
    return { status, headers, body: Buffer.from(code), servedFrom, environment: 'sandbox' };
  };
  const arrivedAtMs = performance.now();
  const request: RoutedRequest = {
    operation,
    client: { name: 'shop', tenant: 'shop', environments: ['sandbox'] },
    requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
    mayListen: true,
    headers: [['Prefer', 'wait=50'], ['X-Request-ID', '99391c7e-ad88-49ec-a2ad-99ddcb1f7721'], ...fields],
    body: Buffer.alloc(0),
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + 10_000,
    recordEvent: (event) => events.push(event),
    environment: environmentOf({ origin: 'http://127.0.0.1:9' }),
  };
  const settle = async () => {
    for (let turns = 0; turns < 5; turns++) await setImmediate();
  };
  return {
    bank,
    reads,
    permits,
    events,
    statusListeners,
    request,
    settle,
    response: stage(request, next),
    refusePermits() {
      arePermitsGranted = false;
    },
    grantPermits() {
      arePermitsGranted = true;
    },
    outdate() {
      isCurrent = false;
    },
    notify: () => listener?.onChange(),
    failPoll() {
      assert.ok(listener);
      listener.hasFailedPoll = true;
    },
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
    assert.deepEqual(withoutDate(again.headers), [['X-Request-ID', again.requestId]]);
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

  test('ends with a read that has all fields of the TPP if the last poll has failed', async (t) => {
    for (const [isPermitted, code] of [
      [true, 'ACSC'],
      [false, 'ACTC'],
    ] as const) {
      t.mock.timers.reset();
      const bic: HeaderFields[number] = ['X-BIC', 'GENODEF1S08'];
      const started = start(t, [bic]);
      if (!isPermitted) started.refusePermits();
      await started.settle();
      started.failPoll();
      started.bank.code = 'ACSC';
      t.mock.timers.tick(50_000);
      await started.settle();
      t.mock.timers.tick(10_000); // half of the deadline, for the permit
      const { status, body } = await started.response;
      assert.deepEqual([status, String(body)], [200, code]);
      assert.deepEqual(started.permits, ['changed']);
      assert.equal(started.reads.length, isPermitted ? 2 : 1);
      if (isPermitted) assert.deepEqual(headerValues(started.reads[1]?.headers ?? [], 'x-bic'), [bic[1]]);
    }
  });

  test('continues after a response that shows no status', async (t) => {
    const { bank, response, notify, settle, isListening } = start(t);
    await settle();
    bank.code = maintenance;
    notify();
    await settle();
    assert.ok(isListening());
    bank.code = 'ACSC';
    notify();
    assert.equal(String((await response).body), 'ACSC');
  });

  test('continues while the status is one of those that the TPP has', async (t) => {
    const tags = ['ACTC', 'ACSP'].map(tagOf).join(', ');
    const known = start(t, [['If-None-Match', tags]], showing('ACTC'));
    const show = (code: string) => Object.assign(known.bank, showing(code));
    await known.settle();
    show('ACSP');
    known.notify();
    await known.settle();
    assert.ok(known.isListening());
    known.notify();
    await known.settle();
    assert.ok(known.isListening());
    show('ACSC');
    known.notify();
    const changed = await known.response;
    assert.deepEqual([changed.status, String(changed.body)], [200, 'ACSC']);
  });

  test('gets 304 with the last tag if the status changes among those that the TPP has', async (t) => {
    const tags = ['ACTC', 'ACSP'].map(tagOf).join(', ');
    const { bank, response, notify, settle } = start(t, [['If-None-Match', tags]], showing('ACTC'));
    await settle();
    Object.assign(bank, showing('ACSP'));
    notify();
    await settle();
    t.mock.timers.tick(50_000);
    const { status, headers } = await response;
    assert.equal(status, 304);
    assert.equal(new Map(headers).get('ETag'), tagOf('ACSP'));
  });

  test('says at its end that a stale status is stale, and how old it is at least', async (t) => {
    const { response, settle } = start(t, [], { servedFrom: 'stale-cache', headers: [['Age', 'unknown']] });
    await settle();
    t.mock.timers.tick(50_000);
    const { servedFrom, headers } = await response;
    assert.equal(servedFrom, 'stale-cache');
    const fields = new Map(headers);
    assert.equal(fields.get('Cache-Status'), 'penstock; hit; fwd=stale; detail=unchanged');
    assert.match(fields.get('Age') ?? '', /^\d+$/);
  });

  test('is answered at once when the gateway drains', async (t) => {
    const { statusListeners, events, response, settle } = start(t);
    await settle();
    statusListeners.drain();
    assert.equal((await response).status, 200);
    assert.equal(outcomeOf(events), 'drained');
    assert.equal(statusListeners.count('wait'), 0);
  });

  test('is refused before the bank is asked if too many wait', async (t) => {
    const { reads, response } = start(t, [], {}, { maxWaiting: 0 });
    await assert.rejects(response, { code: 'OVERLOADED' });
    assert.equal(reads.length, 0);
  });

  test('takes a permit of the polls if a further read must ask the bank, and continues without one', async (t) => {
    const { bank, reads, permits, response, notify, settle, refusePermits, grantPermits } = start(t);
    await settle();
    assert.deepEqual(permits, []);
    bank.code = 'ACSC';
    refusePermits();
    notify();
    await settle();
    assert.equal(reads.length, 1);
    grantPermits();
    notify();
    assert.equal(String((await response).body), 'ACSC');
    assert.deepEqual(permits, ['changed', 'changed']);
  });

  const signature: HeaderFields = [
    ['Signature', 'keyId="SN=1,CA=2",headers="digest x-request-id",signature="abc="'],
    ['Digest', 'SHA-256=abc'],
    ['TPP-Signature-Certificate', 'abc'],
  ];
  const signatureOf = (request: RoutedRequest | undefined) =>
    headerValues(request?.headers ?? [], 'signature');

  test('is an ordinary read if the TPP signs it, and the gateway has no signature of its own', async (t) => {
    const { reads, response, isListening } = start(t, signature);
    assert.equal(headerValues((await response).headers, 'preference-applied').length, 0);
    assert.equal(isListening(), false);
    assert.equal(headerValues(reads[0]?.headers ?? [], 'prefer').join(), 'wait=50');
  });

  test('waits although the TPP signs it, if the gateway signs the reads that follow', async (t) => {
    const { bank, reads, response, notify, settle } = start(t, signature, {}, { signs: true });
    await settle();
    bank.code = 'ACSC';
    notify();
    assert.equal(String((await response).body), 'ACSC');
    const [first, second] = reads;
    assert.equal(signatureOf(first).length, 1);
    assert.deepEqual(withoutDate(second?.headers ?? []), [['X-Request-ID', second?.requestId]]);
  });

  test('is an ordinary read if the signature covers a field that the gateway would answer', async (t) => {
    const covering: HeaderFields = [['Signature', 'keyId="1",headers="digest prefer",signature="abc="']];
    const { reads, response } = start(t, covering, {}, { signs: true });
    await response;
    assert.equal(headerValues(reads[0]?.headers ?? [], 'prefer').join(), 'wait=50');
  });
});

/** The fields of a message of the gateway, whose `Date` is the present time. */
function withoutDate(headers: HeaderFields): HeaderFields {
  const [date = ''] = headerValues(headers, 'date');
  assert.ok(Math.abs(Date.parse(date) - Date.now()) < 60_000, `Date: ${date}`);
  return headers.filter(([name]) => name !== 'Date');
}
