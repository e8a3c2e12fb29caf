/** How long a status is served without asking the bank: by what it is, and by how long it has rested. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerValue } from '../../../src/pis/headers.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import { createMonotonicClock } from '../../../src/status-cache/cache-control.ts';
import { bankResponse, createCacheInstance, statusRead, statusResponse } from './cache-instance.ts';

const second = 1_000;
const hour = 3_600 * second;
const pain = (status: string) =>
  `<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.03"><CstmrPmtStsRpt>` +
  `<OrgnlGrpInfAndSts><GrpSts>${status}</GrpSts></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>`;

/** A payment at the bank, read by an instance whose time the test sets. */
function payment(service: string, answer: () => ReturnType<typeof bankResponse>) {
  let nowMs = Date.parse('2026-01-01T12:00:00Z');
  let asked = 0;
  const bank = async () => {
    asked++;
    return answer();
  };
  const { send } = createCacheInstance(createMemoryState(), bank, {}, () => nowMs);
  const isServed = async () => {
    const before = asked;
    await send(statusRead({ service }));
    return asked === before;
  };
  /** Whether it is still served just before this time has passed, and no longer then. */
  const livesFor = async (ms: number) => {
    await isServed();
    nowMs += ms - 1;
    const before = await isServed();
    nowMs += 1;
    return before && !(await isServed());
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { livesFor, isServed, pass };
}

describe('a status that has just been seen', () => {
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
    ['payments', 'ACCT', second], // in the published pain.002 example, and in no list
    ['payments', 'XXXX', second],
  ] as const) {
    test(`${status} of ${service} is served for ${ms / second} s`, async () => {
      assert.ok(await payment(service, () => statusResponse(status)).livesFor(ms));
    });

    test(`${status} of ${service} is served for ${ms / second} s as pain.002, too`, async () => {
      const answer = bankResponse(200, [['Content-Type', 'application/xml']], pain(status));
      assert.ok(await payment(service, () => answer).livesFor(ms));
    });
  }

  for (const [what, answer] of [
    ['nothing', bankResponse(200)],
    ['no status', bankResponse(200, [['Content-Type', 'application/json']], '{}')],
    ['two statuses', bankResponse(200, [['Content-Type', 'application/xml']], pain('ACCC') + pain('RJCT'))],
    ['a broken coding', bankResponse(200, [['Content-Encoding', 'gzip']], 'no gzip')],
  ] as const) {
    test(`is served for 1 s where the bank says ${what}`, async () => {
      assert.ok(await payment('payments', () => answer).livesFor(second));
    });
  }
});

describe('a status that rests', () => {
  test('is served for a tenth of the time it has rested, and for 15 s at most', async () => {
    const { livesFor, isServed, pass } = payment('payments', () => statusResponse('ACTC'));
    await isServed();
    for (const [rested, ms] of [
      [10, 1_000],
      [40, 5_100],
      [200, 15_000],
      [3_600, 15_000],
    ] as const) {
      pass(rested * second);
      assert.ok(await livesFor(ms), `after another ${rested} s`);
    }
  });

  test('begins anew when it changes, and when the payment was forgotten', async () => {
    let status = 'ACTC';
    const { livesFor, isServed, pass } = payment('payments', () => statusResponse(status));
    await isServed();
    pass(hour);
    status = 'ACSP';
    assert.ok(await livesFor(second));
  });

  test('is not taken to have rested for longer because of an Age of the bank', async () => {
    const { livesFor } = payment('payments', () => statusResponse('ACTC', [['Age', '0']]));
    assert.ok(await livesFor(second));
  });
});

describe('a clock that is set (H11)', () => {
  const start = Date.parse('2026-01-01T12:00:00Z');

  for (const [how, jumps] of [
    ['back by an hour', [-hour]],
    ['back by half of what an entry has left', [-30 * second]],
    ['forth and back', [hour, -hour]],
    ['back and forth', [-hour, hour]],
    ['forth and further back', [hour, -2 * hour, hour]],
  ] as const) {
    test(`${how} never makes an entry live longer`, async () => {
      let steady = 0;
      let setBy = 0;
      const clock = createMonotonicClock(
        () => start + steady + setBy,
        () => steady,
      );
      let asked = 0;
      const bank = async () => statusResponse('ACSC', [], { n: asked++ });
      const { send } = createCacheInstance(
        createMemoryState(() => steady),
        bank,
        {},
        clock,
      );
      await send(statusRead());
      for (const jump of jumps) {
        steady += (60 * second) / jumps.length;
        setBy += jump;
        clock(); // whoever asks for whatever
      }
      await send(statusRead());
      assert.equal(asked, 2);
    });
  }

  test('goes on without a jump where it is set back, and follows where it is set forth', () => {
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
    test(`${byMs} ms differently on two instances costs no second question`, async () => {
      const state = createMemoryState();
      let asked = 0;
      const bank = async () => statusResponse('ACCC', [], { n: asked++ });
      const one = createCacheInstance(state, bank, {}, () => start);
      const other = createCacheInstance(state, bank, {}, () => start + byMs);
      await Promise.all([one.send(statusRead()), other.send(statusRead())]);
      const { headers } = await other.send(statusRead());
      assert.equal(asked, 1);
      assert.equal(headerValue(headers, 'age'), '0');
    });
  }

  test('differently on two instances never has an entry from the future served', async () => {
    const state = createMemoryState();
    let asked = 0;
    const bank = async () => statusResponse('ACCC', [], { n: asked++ });
    const ahead = createCacheInstance(state, bank, {}, () => start + hour);
    const right = createCacheInstance(state, bank, {}, () => start);
    await ahead.send(statusRead());
    await right.send(statusRead());
    assert.equal(asked, 2);
  });
});
