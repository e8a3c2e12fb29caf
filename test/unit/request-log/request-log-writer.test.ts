import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLog, ofTenant, startMs } from './log-fixture.ts';

const chunksIn = (writes: readonly { readonly chunk?: Buffer | undefined }[]) =>
  writes.filter(({ chunk }) => chunk !== undefined).length;

describe('the writer of the request log', () => {
  test('writes all records that have ended since the last flush at once, and nothing if there is none', async () => {
    const { writes, instance } = createLog();
    const one = instance('one');
    await one.writer.flush();
    assert.equal(writes.length, 0);
    for (let count = 0; count < 40; count++) one.end();
    await one.writer.flush();
    assert.equal(writes.length, 1);
    await one.writer.flush();
    await one.writer.flush();
    assert.equal(writes.length, 1);
    assert.equal((await one.find({})).requests.length, 40);
  });

  test('writes once for at least 100 requests between two flushes', async () => {
    const { writes, instance } = createLog();
    const one = instance('one');
    for (let count = 0; count < 10_000; count++) one.end();
    await one.writer.flush();
    assert.ok(chunksIn(writes) <= 100 + 1, `${writes.length} writes`);
    assert.equal((await one.find({ limit: 20_000 })).requests.length, 10_000);
  });

  test('writes the dictionary with the first chunk, and again only if it has grown', async () => {
    const { writes, instance, advance } = createLog();
    const one = instance('one');
    const dictionaries = () =>
      writes.filter(({ values }) => values.some(({ group }) => group === 'dictionaries')).length;
    for (const expected of [1, 1]) {
      one.end();
      await one.writer.flush();
      assert.equal(dictionaries(), expected);
    }
    one.end({ status: 418 });
    await one.writer.flush();
    assert.equal(dictionaries(), 2);
    advance(600_000); // the next slice
    one.end();
    await one.writer.flush();
    assert.equal(dictionaries(), 3);
    assert.equal((await one.find({})).requests.length, 4);
  });

  test('writes a record again when an event follows the end of its request', async () => {
    const { instance, advance } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const events = [{ afterMs: 1, event: { what: 'recorded', as: 'in-doubt' } as const }];
    const record = one.end({ events });
    await one.writer.flush();
    advance(700_000);
    const late = { what: 'late-answer', status: 201 } as const;
    events.push({ afterMs: 700_000, event: late as never });
    one.addLate(late, record);
    await one.writer.flush();
    for (const query of [{ requestId: record.requestId }, {}]) {
      const { requests } = await other.find(query);
      assert.deepEqual(
        requests.map(({ steps }) => steps.map(({ what }) => what)),
        [['recorded', 'late-answer']],
      );
    }
  });

  test('finds a payment that the bank created after the end of its request', async () => {
    const { instance } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const events: { afterMs: number; event: { what: 'payment'; high: number; low: number } }[] = [];
    const record = one.end({ events });
    await one.writer.flush();
    const { hashPaymentId } = await import('../../../src/request/payment-hash.ts');
    const [high, low] = hashPaymentId('a-payment').words;
    const event = { what: 'payment', high, low } as const;
    events.push({ afterMs: 100, event });
    one.addLate(event, record);
    await one.writer.flush();
    const { requests } = await other.find({ payment: 'a-payment' });
    assert.deepEqual(
      requests.map(({ xRequestId }) => xRequestId),
      [record.requestId],
    );
  });

  test('writes the dictionary again after the state has lost it, so that later records can be read', async () => {
    const { instance, loseEverything, advance } = createLog();
    const one = instance('one');
    one.end();
    await one.writer.flush();
    loseEverything();
    const later: (string | undefined)[] = [];
    for (let second = 0; second < 3; second++) {
      advance(1_000);
      later.push(one.end().requestId);
      await one.writer.flush();
    }
    const { requests } = await one.find({});
    assert.deepEqual(
      requests.map(({ xRequestId }) => xRequestId),
      later.toReversed(),
    );
  });

  test('writes the dictionary once although writes take effect without an answer', async () => {
    const { instance, writes, fail } = createLog();
    const one = instance('one');
    for (const when of ['after the write', 'never', 'after the write', 'never', 'never'] as const) {
      fail(when);
      one.end();
      await one.writer.flush();
    }
    const accepted = new Map(writes.map((write) => [write.number, write]));
    const dictionaries = [...accepted.values()].filter(({ values }) =>
      values.some(({ group }) => group === 'dictionaries'),
    );
    assert.equal(dictionaries.length, 1);
    assert.equal((await one.find({})).requests.length, 5);
  });

  test('keeps the dictionary of earlier records when the clock is set back into their slice', async () => {
    const { instance, advance } = createLog();
    const [one, other] = [instance('one'), instance('other')];
    const expected: unknown[] = [];
    const end = async (tenant: string) => {
      const { requestId } = one.end(ofTenant(tenant));
      expected.push([requestId, tenant, 'one']);
      await one.writer.flush();
    };
    await end('shop');
    for (const [ms, tenant] of [
      [600_000, 'rival'],
      [-600_000, 'merchant'],
      [600_000, 'bakery'],
      [-600_000, 'florist'],
    ] as const) {
      advance(ms);
      await end(tenant);
    }
    advance(700_000);
    for (const each of [one, other]) {
      const { requests } = await each.find({});
      const found = requests.map(({ xRequestId, tenant, instance }) => [xRequestId, tenant, instance]);
      assert.deepEqual(new Set(found), new Set(expected));
    }
  });

  test('keeps the records while the state is unavailable, and stores them afterwards', async () => {
    const { instance, fail, writes, advance } = createLog();
    const one = instance('one');
    fail('before the write');
    for (let second = 0; second < 30; second++) {
      for (let count = 0; count < 20; count++) one.end();
      assert.equal(await one.writer.flush(), false);
      advance(1_000);
    }
    fail('never');
    assert.equal(await one.writer.flush(), true);
    assert.equal((await one.find({})).requests.length, 600);
    assert.ok(writes.length <= 1 + 600 / 100, `${writes.length} writes`);
    assert.equal(one.notStored(), 0);
  });

  test('stores nothing twice if a write took effect but was not answered', async () => {
    const { instance, fail, log } = createLog();
    const one = instance('one');
    one.end();
    fail('after the write');
    assert.equal(await one.writer.flush(), false);
    fail('never');
    assert.equal(await one.writer.flush(), true);
    const [first, second] = await log.readChunks(startMs / 600_000, [0, 1]);
    assert.ok(first && !second);
    assert.equal((await one.find({})).requests.length, 1);
  });

  test('uses a bounded amount of memory during an outage, and counts what it does not store', async () => {
    const { instance, fail } = createLog();
    const one = instance('one');
    fail('before the write');
    const count = 60_000;
    for (let index = 0; index < count; index++) {
      one.end(ofTenant('flooding', 'read'));
      if (index % 1_000 === 0) one.end(ofTenant('careful', 'read'));
    }
    await one.writer.flush();
    assert.ok(one.notStored() > count / 2, `${one.notStored()} not stored`);
    fail('never');
    assert.equal(await one.writer.flush(), true);

    const { requests, notStored } = await one.find({ tenant: 'careful', limit: 100 });
    assert.deepEqual([requests.length, notStored], [60, 0]);
    const flooding = await one.find({ tenant: 'flooding', limit: count });
    assert.ok(flooding.requests.length > 1_000);
    assert.equal(flooding.notStored, one.notStored());
  });

  test('does not displace payments of the same tenant, nor records of other tenants', async () => {
    const { instance, advance } = createLog({ maxStoredPerTenant: 144 * 50_000 });
    const [one, other] = [instance('one'), instance('other')];
    const careful: (string | undefined)[] = [];
    const payments: (string | undefined)[] = [];
    for (let second = 0; second < 60; second++) {
      for (let count = 0; count < 100; count++)
        for (const each of [one, other]) each.end(ofTenant('flooding', 'status'));
      payments.push(one.end(ofTenant('flooding', 'write')).requestId);
      careful.push(other.end(ofTenant('careful', 'status')).requestId);
      for (const each of [one, other]) await each.writer.flush();
      advance(1_000);
    }
    const found = await one.find({ tenant: 'careful' });
    assert.deepEqual(new Set(found.requests.map(({ xRequestId }) => xRequestId)), new Set(careful));
    assert.equal(found.notStored, 0);
    const flooding = await one.find({ tenant: 'flooding', limit: 20_000 });
    const ids = new Set(flooding.requests.map(({ xRequestId }) => xRequestId));
    assert.ok(payments.every((id) => ids.has(id ?? '')));
    assert.equal(flooding.requests.length + flooding.notStored, 60 * 201);
    assert.ok(flooding.notStored > 5_000);
  });
});
