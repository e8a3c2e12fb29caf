/** How long a status is fresh, by its finality and by how long it has not changed; and the clock that measures it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerValue } from '../../../src/pis/headers.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createMonotonicClock } from '../../../src/status-cache/cache-control.ts';
import { bankResponse, bankStatusResponse, createCacheInstance, statusRead } from './cache-instance.ts';

const second = 1_000;
const hour = 3_600 * second;
const pain = (status: string) =>
  `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.03"><CstmrPmtStsRpt>` +
  `<OrgnlGrpInfAndSts><GrpSts>${status}</GrpSts></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>`;

/** A payment at the bank, read by an instance whose clock the test sets. */
function payment(service: string, answer: () => ReturnType<typeof bankResponse>) {
  let nowMs = Date.parse('2026-01-01T12:00:00Z');
  let fetches = 0;
  const bank = async () => {
    fetches++;
    return answer();
  };
  const { send } = createCacheInstance(createMemoryState(), bank, {}, () => nowMs);
  const isServed = async () => {
    const before = fetches;
    await send(statusRead({ service }));
    return fetches === before;
  };
  /** Whether the cache serves it until just before this time has passed, and not afterwards. */
  const isFreshFor = async (ms: number) => {
    await isServed();
    nowMs += ms - 1;
    const before = await isServed();
    nowMs += 1;
    return before && !(await isServed());
  };
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { isFreshFor, isServed, advance };
}

describe('the freshness of a new status', () => {
  for (const [service, status, ms] of [
    ['payments', 'ACCC', hour],
    ['payments', 'RJCT', hour],
    ['payments', 'CANC', hour],
    ['payments', 'ACSC', 60 * second],
    ['payments', 'ACCP', second],
    ['payments', 'RCVD', second],
    ['payments', 'ACSP', second],
    ['bulk-payments', 'PART', second],
    ['bulk-payments', 'ACCC', hour],
    ['periodic-payments', 'CANC', hour],
    ['periodic-payments', 'ACCC', second], // one transfer of many has arrived
    ['periodic-payments', 'ACCP', second],
    ['payments', 'ACCT', second], // in the published pain.002 example, but in no list of statuses
    ['payments', 'XXXX', second],
  ] as const) {
    test(`keeps ${status} of ${service} fresh for ${ms / second} s in JSON`, async () => {
      assert.ok(await payment(service, () => bankStatusResponse(status)).isFreshFor(ms));
    });

    test(`keeps ${status} of ${service} fresh for ${ms / second} s in pain.002`, async () => {
      const answer = bankResponse(200, [['Content-Type', 'application/xml']], pain(status));
      assert.ok(await payment(service, () => answer).isFreshFor(ms));
    });
  }

  for (const [what, answer] of [
    ['an empty body', bankResponse(200)],
    ['no status', bankResponse(200, [['Content-Type', 'application/json']], '{}')],
    ['two statuses', bankResponse(200, [['Content-Type', 'application/xml']], pain('ACCC') + pain('RJCT'))],
    ['an invalid content coding', bankResponse(200, [['Content-Encoding', 'gzip']], 'not gzip')],
  ] as const) {
    test(`keeps a response with ${what} fresh for 1 s`, async () => {
      assert.ok(await payment('payments', () => answer).isFreshFor(second));
    });
  }
});

describe('the freshness of an unchanged status', () => {
  test('extends the freshness of an unchanged status to a tenth of the time since its last change, up to 15 s', async () => {
    const { isFreshFor, isServed, advance } = payment('payments', () => bankStatusResponse('ACTC'));
    await isServed();
    for (const [rested, ms] of [
      [10, 1_000],
      [40, 5_100],
      [200, 15_000],
      [3_600, 15_000],
    ] as const) {
      advance(rested * second);
      assert.ok(await isFreshFor(ms), `after another ${rested} s`);
    }
  });

  test('reduces the freshness to the minimum after a change', async () => {
    let status = 'ACTC';
    const { isFreshFor, isServed, advance } = payment('payments', () => bankStatusResponse(status));
    await isServed();
    advance(hour);
    status = 'ACSP';
    await isServed(); // finds the change; the next response is stored
    assert.ok(await isFreshFor(second));
  });

  test('does not extend the freshness because of an Age of the bank', async () => {
    const { isFreshFor } = payment('payments', () => bankStatusResponse('ACTC', [['Age', '0']]));
    assert.ok(await isFreshFor(second));
  });
});

describe('the cache clock when the machine clock is set (H11)', () => {
  const start = Date.parse('2026-01-01T12:00:00Z');

  for (const [how, jumps] of [
    ['back by an hour', [-hour]],
    ['back by half of the remaining lifetime', [-30 * second]],
    ['forward and back', [hour, -hour]],
    ['back and forward', [-hour, hour]],
    ['forward and further back', [hour, -2 * hour, hour]],
  ] as const) {
    test(`does not extend the freshness of a response if set ${how}`, async () => {
      let steady = 0;
      let offset = 0;
      const clock = createMonotonicClock(
        () => start + steady + offset,
        () => steady,
      );
      let fetches = 0;
      const bank = async () => bankStatusResponse('ACSC', [], { n: fetches++ });
      const { send } = createCacheInstance(
        createMemoryState(() => steady),
        bank,
        {},
        clock,
      );
      await send(statusRead());
      for (const jump of jumps) {
        steady += (60 * second) / jumps.length;
        offset += jump;
        clock(); // any request reads it
      }
      await send(statusRead());
      assert.equal(fetches, 2);
    });
  }

  test('continues the cache clock if the machine clock is set back, and follows it if it is set forward', () => {
    let [wall, steady] = [5_000, 100];
    const clock = createMonotonicClock(
      () => wall,
      () => steady,
    );
    assert.equal(clock(), 5_000);
    steady += 10;
    wall -= 4_000;
    assert.equal(clock(), 5_010);
    wall += 9_000;
    assert.equal(clock(), 10_000);
  });

  for (const byMs of [-100, -1, 1, 100]) {
    test(`fetches once if the clocks of two instances differ by ${byMs} ms`, async () => {
      const state = createMemoryState();
      let fetches = 0;
      const bank = async () => bankStatusResponse('ACCC', [], { n: fetches++ });
      const one = createCacheInstance(state, bank, {}, () => start);
      const other = createCacheInstance(state, bank, {}, () => start + byMs);
      await Promise.all([one.send(statusRead()), other.send(statusRead())]);
      const { headers } = await other.send(statusRead());
      assert.equal(fetches, 1);
      assert.equal(headerValue(headers, 'age'), '0');
    });
  }

  test('serves no response from the future if the clocks of two instances differ by an hour', async () => {
    const state = createMemoryState();
    let fetches = 0;
    const bank = async () => bankStatusResponse('ACCC', [], { n: fetches++ });
    const ahead = createCacheInstance(state, bank, {}, () => start + hour);
    const right = createCacheInstance(state, bank, {}, () => start);
    await ahead.send(statusRead());
    await right.send(statusRead());
    assert.equal(fetches, 2);
  });
});
