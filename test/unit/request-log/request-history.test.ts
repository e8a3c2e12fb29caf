import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { failedRecord } from '../../kit/request-records.ts';
import { createLog, ofTenant, startMs } from './log-fixture.ts';

/** @returns in how many turns of the event loop an operation ends, and its result */
async function countTurns<Result>(operation: Promise<Result>): Promise<readonly [number, Result]> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  operation.then(end, end);
  let turns = 0;
  for (; !isDone; turns++) await setImmediate();
  return [turns, await operation];
}

describe('the history of all instances', () => {
  test('sums the figures of all instances in each minute, also across slices', async () => {
    const { instance, advance, now } = createLog();
    const instances = [instance('one'), instance('other')];
    for (let second = 0; second < 1_200; second++) {
      for (const each of instances) each.end({ durationMs: 10 }, [{ what: 'cache', verdict: 'hit' }]);
      advance(1_000);
      if (second % 7 === 0) for (const each of instances) await each.writer.flush();
    }
    const [one, other] = instances;
    const all = await one?.history.figures(startMs, now() - 1);
    await other?.writer.flush(); // a reader writes its own figures first
    for (const each of instances) {
      const { resolutionSeconds, points } = await each.history.figures(startMs, now() - 1);
      assert.equal(resolutionSeconds, 60);
      assert.equal(points.length, 20);
      for (const [index, point] of points.entries()) {
        assert.equal(point.at, startMs / 1_000 + 60 * index);
        assert.deepEqual([point.requests, point.refused, point.failed], [120, 0, 0]);
        assert.equal(point.cache.hit, 120);
        assert.ok(Math.abs((point.p50Ms ?? 0) - 10) <= 0.5);
      }
    }
    assert.equal(all?.points.length, 20);
  });

  test('has at most 360 points, and those without requests have no quantiles', async () => {
    const { instance, advance, now } = createLog();
    const one = instance('one');
    one.end();
    one.end({ status: 500 });
    one.end(failedRecord('CIRCUIT_OPEN', 503));
    advance(1_000);
    await one.writer.flush();
    advance(20 * 3_600_000);
    const { resolutionSeconds, points } = await one.history.figures(now() - 24 * 3_600_000, now());
    assert.equal(resolutionSeconds, 300);
    assert.equal(points.length, 289);
    const [first, ...more] = points.filter(({ requests }) => requests > 0);
    assert.deepEqual([first?.at, first?.requests], [startMs / 1_000, 3]);
    assert.deepEqual([first?.refused, first?.failed], [1, 1]);
    assert.equal(more.length, 0);
    assert.deepEqual([points[0]?.p50Ms, points[0]?.p99Ms], [null, null]);
  });

  test('reads a few slices at a time', async () => {
    const { instance, log, advance, now } = createLog();
    const one = instance('one');
    for (let slice = 0; slice < 100; slice++) {
      one.end();
      advance(1_000);
      await one.writer.flush();
      advance(599_000);
    }
    const { readValues } = log;
    let reads = 0;
    let mostReads = 0;
    const countingReads: typeof readValues = async (...args) => {
      reads += 1;
      mostReads = Math.max(mostReads, reads);
      await setImmediate();
      reads -= 1;
      return readValues(...args);
    };
    Object.assign(log, { readValues: countingReads });
    const { points } = await one.history.figures(startMs, now());
    assert.equal(points.filter(({ requests }) => requests > 0).length, 100);
    assert.ok(mostReads > 1 && mostReads <= 24, `${mostReads} reads at the same time`);
  });

  test('lets requests be served while it decodes many values', async () => {
    const { instance, advance, now } = createLog();
    const instances = Array.from({ length: 5 }, (_, index) => instance(`instance-${index}`));
    for (let minute = 0; minute < 20; minute++) {
      for (const each of instances) {
        for (let tenant = 0; tenant < 40; tenant++)
          each.end({
            ...failedRecord('CIRCUIT_OPEN', 503),
            ...ofTenant(`tenant-${tenant}`),
            receivedAtMs: now() - 12,
          });
      }
      advance(60_000);
      for (const each of instances) await each.writer.flush();
    }
    const [one = assert.fail()] = instances;
    const [turnsOfErrors, errors] = await countTurns(one.history.errors());
    assert.equal(errors.length, 40);
    assert.ok(turnsOfErrors > 5, `${turnsOfErrors} turns`);
    const [turnsOfFigures, { points }] = await countTurns(one.history.figures(startMs, now()));
    assert.equal(points.filter(({ requests }) => requests > 0).length, 20);
    assert.ok(turnsOfFigures >= 20, `${turnsOfFigures} turns`);
  });

  test('includes the figures of an outage of the state', async () => {
    const { instance, advance, fail, now } = createLog();
    const one = instance('one');
    fail('before the write');
    for (let second = 0; second < 200; second++) {
      one.end();
      advance(1_000);
      await one.writer.flush();
    }
    fail('never');
    const { points } = await one.history.figures(startMs, now() - 1);
    assert.deepEqual(
      points.map(({ requests }) => requests),
      [60, 60, 60, 20],
    );
  });
});

describe('the most frequent errors', () => {
  test('are counted by code, client, operation and status of the bank, on all instances, for an hour', async () => {
    const { instance, advance, now } = createLog();
    const instances = [instance('one'), instance('other')];
    const [one, other] = instances;
    if (!one || !other) assert.fail();
    const at = () => ({ receivedAtMs: now() - 12 });
    for (let count = 0; count < 3; count++)
      for (const each of instances) each.end({ ...failedRecord('CIRCUIT_OPEN', 503), ...at() });
    one.end({ ...failedRecord('QUOTA_EXCEEDED', 429), ...at(), ...ofTenant('shop', 'read') });
    for (const each of instances) await each.writer.flush();
    advance(3_000_000);
    other.end({ ...at(), status: 404 });
    const last = other.end({ ...at(), status: 404 });
    other.end({ ...at(), status: 404, servedFrom: 'ledger' }); // the bank was not asked
    other.end({ ...at(), status: 201 });
    await other.writer.flush();

    const payment = {
      client: 'shop',
      tenant: 'merchants',
      operation: 'initiatePayment',
      environment: 'sandbox',
    };
    for (const each of instances) {
      const errors = await each.history.errors();
      const shown = errors.map(({ lastAtMs, xRequestId, ...error }) => error);
      assert.deepEqual(shown, [
        { code: 'CIRCUIT_OPEN', ...payment, bankStatus: null, count: 6 },
        { code: null, ...payment, bankStatus: 404, count: 2 },
        {
          code: 'QUOTA_EXCEEDED',
          client: 'client of shop',
          tenant: 'shop',
          operation: 'getPayment',
          environment: 'sandbox',
          bankStatus: null,
          count: 1,
        },
      ]);
      assert.deepEqual([errors[1]?.lastAtMs, errors[1]?.xRequestId], [now(), last.requestId]);
    }
    advance(700_000);
    assert.deepEqual(
      (await one.history.errors()).map(({ bankStatus }) => bankStatus),
      [404],
    );
  });
});
