import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { hashPaymentId } from '../../../src/request/payment-hash.ts';
import type { SearchResult } from '../../../src/telemetry/request-search.ts';
import { failedRecord } from '../../kit/request-records.ts';
import { createLog, ofTenant, startMs } from './log-fixture.ts';

const idsOf = ({ requests }: SearchResult) => requests.map(({ xRequestId }) => xRequestId);

describe('the search in the records of all instances', () => {
  test('finds a request by its id in any letter case, on each instance, however old it is', async () => {
    const { instance, advance } = createLog();
    const instances = ['one', 'two', 'three'].map((name) => instance(name));
    const [one] = instances;
    const record = one?.end() ?? assert.fail();
    for (let slice = 0; slice < 140; slice++) {
      for (const each of instances) {
        each.end();
        await each.writer.flush();
      }
      advance(600_000);
    }
    for (const each of instances) {
      const result = await each.find({ requestId: record.requestId?.toUpperCase() });
      assert.deepEqual(
        result.requests.map(({ xRequestId, instance }) => [xRequestId, instance]),
        [[record.requestId, 'one']],
      );
      assert.ok(result.isComplete);
    }
  });

  test('finds all requests of a payment: its initiation, and those with its id in the path', async () => {
    const { instance, advance } = createLog();
    advance(1_000);
    const [one, other] = [instance('one'), instance('other')];
    const { words } = hashPaymentId('payment-1');
    const created = one.end({}, [{ what: 'payment', high: words[0], low: words[1] }]);
    const { request } = ofTenant('merchants', 'status');
    const polled = other.end({ receivedAtMs: startMs + 995, request: { ...request, payment: words } });
    other.end({ request: { ...request, payment: hashPaymentId('payment-2').words } });
    for (const each of [one, other]) await each.writer.flush();
    assert.deepEqual(idsOf(await one.find({ payment: 'payment-1' })), [polled.requestId, created.requestId]);
    assert.deepEqual(idsOf(await one.find({ payment: 'payment-3' })), []);
  });

  test('finds requests by tenant, by error and by time, and requires all conditions', async () => {
    const { instance, advance } = createLog();
    advance(1_000);
    const [one, other] = [instance('one'), instance('other')];
    const { request } = ofTenant('shop');
    const at = (ms: number) => ({ receivedAtMs: startMs + ms });
    const refused = one.end({ ...failedRecord('CIRCUIT_OPEN', 503), ...at(1), requestId: randomUUID() });
    const shopRefused = other.end({
      ...failedRecord('CIRCUIT_OPEN', 503),
      ...at(2),
      request,
      requestId: randomUUID(),
    });
    const bankFailed = other.end({ ...at(3), request, status: 500 });
    const notFound = one.end({ ...at(4), request, status: 404 });
    const replayed = one.end({ ...at(5), request, status: 404, servedFrom: 'ledger' });
    for (const each of [one, other]) await each.writer.flush();

    const all = [replayed, notFound, bankFailed, shopRefused, refused].map(({ requestId }) => requestId);
    const [, notFoundId, bankFailedId, shopRefusedId, refusedId] = all;
    for (const each of [one, other]) {
      assert.deepEqual(idsOf(await each.find({})), all);
      assert.deepEqual(idsOf(await each.find({ tenant: 'shop' })), all.slice(0, 4));
      assert.deepEqual(idsOf(await each.find({ tenant: 'nobody' })), []);
      assert.deepEqual(idsOf(await each.find({ error: 'CIRCUIT_OPEN' })), [shopRefusedId, refusedId]);
      assert.deepEqual(idsOf(await each.find({ error: '500' })), [bankFailedId]);
      assert.deepEqual(idsOf(await each.find({ error: 'any', tenant: 'shop' })), [
        notFoundId,
        bankFailedId,
        shopRefusedId,
      ]);
      const between = { fromMs: startMs + 2, toMs: startMs + 4 };
      assert.deepEqual(idsOf(await each.find(between)), [bankFailedId, shopRefusedId]);
      assert.deepEqual(idsOf(await each.find({ requestId: refusedId, tenant: 'shop' })), []);
    }
  });

  test('can be continued until all requests were listed once', async () => {
    const { instance, advance, now } = createLog();
    const instances = [instance('one'), instance('other')];
    const all: string[] = [];
    for (let second = 0; second < 1_500; second++) {
      for (const each of instances)
        for (let count = 0; count < 2; count++)
          all.push(each.end({ receivedAtMs: now() - 37 * (second % 50) }).requestId ?? '');
      for (const each of instances) await each.writer.flush();
      advance(1_000);
    }
    const [one = assert.fail()] = instances;
    const listed: string[] = [];
    let toMs = now() + 1;
    for (let pages = 0; ; pages++) {
      const page = await one.find({ toMs, limit: 100 });
      listed.push(...idsOf(page));
      assert.ok(page.requests.length <= 104);
      if (page.isComplete) break;
      assert.ok(page.searchedFromMs < toMs && pages < 200);
      toMs = page.searchedFromMs;
    }
    assert.equal(listed.length, all.length);
    assert.deepEqual(new Set(listed), new Set(all));
  });

  test('lists only records that are still kept', async () => {
    const { instance, advance } = createLog({ keepFor: 3_600_000 });
    const one = instance('one');
    const first = one.end();
    await one.writer.flush();
    advance(3_500_000);
    const second = one.end();
    await one.writer.flush();
    assert.deepEqual(idsOf(await one.find({})), [second.requestId, first.requestId]);
    advance(200_000);
    assert.deepEqual(idsOf(await one.find({})), [second.requestId]);
  });

  test('finds the requests and the figures of an instance whose clock is ahead, at the end of a slice', async () => {
    const { instance, advance } = createLog();
    const [one, ahead] = [instance('one'), instance('ahead', 2, 30_000)];
    advance(590_000);
    const { requestId } = ahead.end();
    await ahead.writer.flush();
    for (const query of [{ requestId }, {}, { error: undefined, tenant: 'merchants' }])
      assert.deepEqual(idsOf(await one.find(query)), [requestId], JSON.stringify(query));
  });

  test('lists two requests of one id that were received at the same time', async () => {
    const { instance } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const requestId = randomUUID();
    for (const each of [one, one, other]) each.end({ requestId });
    for (const each of [one, other]) await each.writer.flush();
    assert.equal((await one.find({ requestId })).requests.length, 3);
    assert.equal((await other.find({ requestId })).requests.length, 3);
  });

  test('finds the requests of one tenant with an id, whatever other tenants have sent with it', async () => {
    const { instance, advance } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const requestId = randomUUID();
    const of = (tenant: string) => ({ requestId, ...ofTenant(tenant) });
    one.end({ ...of('shop'), status: 200 });
    advance(1_000);
    one.end({ ...of('rival'), status: 404 });
    other.end({ ...of('rival'), status: 429 });
    other.end({ ...of('shop#2'), status: 201 });
    for (const each of [one, other]) await each.writer.flush();
    for (const each of [one, other]) {
      const statusesOf = async (tenant: string) => {
        const { requests, isComplete } = await each.findOwn(tenant, requestId.toUpperCase());
        assert.ok(isComplete);
        return requests.map(({ status }) => status).toSorted((a, b) => a - b);
      };
      assert.deepEqual(await statusesOf('shop'), [200]);
      assert.deepEqual(await statusesOf('rival'), [404, 429]);
      assert.deepEqual(await statusesOf('shop#2'), [201]);
      for (const other of ['shop#?', 'sho', 'shopp', '*']) assert.deepEqual(await statusesOf(other), []);
    }
  });

  test('reads the same for an id of another tenant as for an unknown one', async () => {
    const { instance, log } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const requestId = randomUUID();
    for (let count = 0; count < 50; count++) {
      one.end(ofTenant('shop')); // in the same chunk
      one.end({ requestId, ...ofTenant('rival') });
    }
    await one.writer.flush();
    const reads: string[] = [];
    const counting = (operation: 'readIndex' | 'readCounters' | 'readValues' | 'readChunks') => {
      const read = log[operation] as (...parameters: unknown[]) => unknown; // of all four
      return (...parameters: unknown[]) => {
        reads.push(operation);
        return read(...parameters);
      };
    };
    const operations = ['readIndex', 'readCounters', 'readValues', 'readChunks'] as const;
    for (const operation of operations) Object.assign(log, { [operation]: counting(operation) });
    const readsFor = async (tenant: string, id: string) => {
      reads.length = 0;
      const { requests } = await other.findOwn(tenant, id);
      return [requests.length, ...reads.toSorted()];
    };
    assert.deepEqual(await readsFor('shop', requestId), await readsFor('shop', randomUUID()));
    const own = await readsFor('rival', requestId);
    assert.equal(own[0], 50);
    assert.ok(own.includes('readChunks'));
  });

  test('finds no own requests in the records of a time without look-ups, and needs no index for them', async () => {
    const { instance, writes } = createLog({ selfService: false });
    const [one, other] = [instance('one'), instance('other')];
    const { requestId = '' } = one.end(ofTenant('shop'));
    await one.writer.flush();
    assert.equal((await other.find({ requestId, tenant: 'shop' })).requests.length, 1);
    assert.equal((await other.findOwn('shop', requestId)).requests.length, 0);
    const indexed = [...(writes[0]?.index ?? [])].reduce((sum, [, { length }]) => sum + length / 4, 0);
    assert.equal(indexed, 2 + 2, 'first and last second, id and tenant');
  });

  test('fails instead of listing only its own recent requests to a TPP', async () => {
    const { instance, log } = createLog();
    const one = instance('one');
    const { requestId = '' } = one.end(ofTenant('shop'));
    Object.assign(log, { readIndex: () => Promise.reject(new Error('unavailable')) });
    await assert.rejects(one.findOwn('shop', requestId), /unavailable/);
  });

  test('lists the recent requests of its own instance by id while the state is unavailable', async () => {
    const { instance, log } = createLog();
    const one = instance('one');
    const { requestId } = one.end();
    const unavailable = async () => {
      throw new Error('unavailable');
    };
    for (const operation of ['readIndex', 'readCounters', 'readValues', 'readChunks'] as const)
      Object.assign(log, { [operation]: unavailable });
    const found = await one.find({ requestId });
    assert.deepEqual(idsOf(found), [requestId]);
    assert.equal(found.isComplete, false);
    await assert.rejects(one.find({ requestId: randomUUID() }), /unavailable/);
    await assert.rejects(one.find({}), /unavailable/);
  });
});
