/** Whether customers can pay, second by second, on a clock of the test: the answer is right soon, and does not flap. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { liveThrough, type Traffic } from '../../kit/alert-clock.ts';
import { initiations } from '../../kit/alert-facts.ts';
import { seededRandom } from '../../kit/random.ts';

const instant = 'payments/instant-sepa-credit-transfers';
const revoked = '401 CERTIFICATE_REVOKED';
/** Of one initiation each, of a tenant with a number. */
const one = (result: string, tenant = 0, more = {}) =>
  initiations(1, result, { tenants: [[tenant, 1]], ...more });
const each =
  (seconds: number, what: Traffic): Traffic =>
  (second) =>
    second % seconds === 0 ? what(second) : [];
const both =
  (...all: readonly Traffic[]): Traffic =>
  (second) =>
    all.flatMap((traffic) => traffic(second));

/** The answers, each with the second from which it holds. */
function answersIn(
  traffic: Traffic,
  seconds: number,
): readonly (readonly [second: number, answer: string])[] {
  const changes: (readonly [number, string])[] = [];
  for (const { second, answer } of liveThrough(traffic, seconds))
    if (changes.at(-1)?.[1] !== answer) changes.push([second, answer]);
  return changes;
}

/** When the answer is `no` for the first time, and whether it stays. */
function assertCannotPay(traffic: Traffic, seconds: number, withinSeconds: number, from = 0): void {
  const changes = answersIn(traffic, seconds);
  const [second, answer] = changes.at(-1) ?? [];
  assert.equal(answer, 'no', `the answers ${JSON.stringify(changes)}`);
  assert.ok(changes.length <= 3, `the answers ${JSON.stringify(changes)}`);
  assert.ok(second !== undefined && second - from <= withinSeconds, `from ${second} s on`);
}

function assertSomeFail(traffic: Traffic, seconds: number, withinSeconds: number): void {
  const changes = answersIn(traffic, seconds);
  assert.deepEqual(
    changes.map(([, answer]) => answer),
    ['yes', 'some'],
    JSON.stringify(changes),
  );
  assert.ok((changes[1]?.[0] ?? 0) <= withinSeconds, JSON.stringify(changes));
}

describe('some payments fail, and customers can pay,', () => {
  for (const interval of [15, 100, 240])
    test(`while the bank refuses one tenant, and accepts the payment of another each ${interval} s`, () => {
      const traffic = both(
        (second) => (second < 10 ? [] : [one('403 SERVICE_BLOCKED', 1)]),
        each(interval, () => [one('accepted')]),
      );
      assertSomeFail(traffic, 900, 20);
    });

  test('while one product fails, and a payment of another each 15 s succeeds', () => {
    const traffic = both(
      (second) => (second < 10 ? [] : [one('failed', second % 3)]),
      each(15, (second) => [one('accepted', second % 3, { product: instant })]),
    );
    assertSomeFail(traffic, 600, 20);
  });

  test('while the bank refuses one tenant, and another one, which pays each second or each 10 s, has a single time-out', () => {
    for (const interval of [1, 10]) {
      const traffic = both(
        (second) => (second < 10 ? [] : [one('403 SERVICE_BLOCKED', 1), one('403 SERVICE_BLOCKED', 1)]),
        each(interval, (second) => [one(second === 100 ? 'failed' : 'accepted')]),
      );
      assertSomeFail(traffic, 200, 20);
    }
  });

  test('while one product fails, and a payment of another each 100 s succeeds', () => {
    const traffic = both(
      (second) => (second < 10 ? [] : [one('failed', second % 3)]),
      each(100, (second) => [one('accepted', second % 3, { product: instant })]),
    );
    const answers = answersIn(traffic, 1_200);
    assert.ok((answers.at(-1)?.[0] ?? 0) < 250, JSON.stringify(answers)); // until a payment of it has succeeded during the failure
    assert.equal(answers.at(-1)?.[1], 'some', JSON.stringify(answers));
  });

  test('while two tenants fail, and payments of two others each 100 s succeed', () => {
    const traffic = both(
      (second) => (second < 10 ? [] : [one('failed', 1), one('failed', 2)]),
      each(100, () => [one('accepted', 3)]),
      (second) => (second % 100 === 10 ? [one('accepted', 4)] : []),
    );
    const answers = answersIn(traffic, 1_200);
    assert.ok((answers.at(-1)?.[0] ?? 0) < 250, JSON.stringify(answers));
    assert.equal(answers.at(-1)?.[1], 'some', JSON.stringify(answers));
  });

  test('while the bank refuses one tenant, and another one, which pays each 200 s, has a single time-out', () => {
    const traffic = both(
      (second) => (second < 10 ? [] : [one('403 SERVICE_BLOCKED', 1)]),
      each(100, () => [one('accepted')]),
      each(200, (second) => [one(second === 600 ? 'failed' : 'accepted', 2)]),
    );
    assertSomeFail(traffic, 1_200, 20);
  });

  test('while one product fails, and another one has a single time-out', () => {
    const traffic = both(
      (second) => (second < 10 ? [] : [one('failed', second % 3), one('failed', 1)]),
      (second) => [one(second === 100 ? 'failed' : 'accepted', second % 3, { product: instant })],
    );
    assertSomeFail(traffic, 200, 20);
  });

  test('while 25 of 100 tenants fail, of which some share numbers', () => {
    const random = seededRandom(1);
    const numbers = Array.from({ length: 100 }, () => Math.floor(random() * 31));
    const traffic: Traffic = (second) =>
      Array.from({ length: 10 }, () => {
        const failed = second > 120 && random() < 0.6;
        const tenant = failed ? Math.floor(random() * 25) : 25 + Math.floor(random() * 75);
        return one(failed ? 'failed' : 'accepted', numbers[tenant]);
      });
    assert.ok(!answersIn(traffic, 300).some(([, answer]) => answer === 'no'));
  });

  test('while 12 % fail', () => {
    const random = seededRandom(2);
    const traffic: Traffic = () => [one(random() < 0.12 ? 'failed' : 'accepted')];
    assert.ok(answersIn(traffic, 1_500).length <= 6);
  });
});

describe('customers cannot pay', () => {
  test('while every payment of every tenant fails, for different reasons', () => {
    const traffic: Traffic = () => [one('401 TOKEN_INVALID'), one('failed', 1)];
    assertCannotPay(traffic, 120, 15);
    for (const { alerts } of liveThrough(traffic, 60))
      assert.doesNotMatch(alerts.map(({ text }) => text).join(), /succeed/);
  });

  test('while the bank refuses everything of many tenants', () => {
    const random = seededRandom(3);
    const traffic: Traffic = (second) =>
      Array.from({ length: 2 }, () => one(second < 300 ? 'accepted' : revoked, Math.floor(random() * 20)));
    assertCannotPay(traffic, 500, 20, 300);
  });

  for (const interval of [20, 100, 240])
    test(`once a second tenant, which pays each ${interval} s, has failed twice`, () => {
      const result = (second: number) => (second < 300 ? 'accepted' : 'failed');
      const traffic = both(
        (second) => [one(result(second), 1)],
        each(interval, (second) => [one(result(second))]),
      );
      assertCannotPay(traffic, 300 + 4 * interval, 2 * interval, 300);
    });

  test('soon after the bank has failed for 40 tenants that pay rarely', () => {
    const traffic: Traffic = (second) =>
      [0, 10, 20, 30].map((add) => one(second < 120 ? 'accepted' : 'failed', ((second % 10) + add) % 31));
    assertCannotPay(traffic, 180, 12, 120);
  });

  test('while the payments of all tenants are refused for reasons of single tenants', () => {
    assertCannotPay((second) => [one('tenant-blocked', second % 3)], 120, 15);
  });

  test('while the bank works for 10 of each 30 seconds, without a change of the answer', () => {
    assertCannotPay((second) => [one(second % 30 < 20 ? 'failed' : 'accepted', second % 3)], 900, 15);
  });

  test('while 60 % fail, of one payment in 5 s, with few changes of the answer', () => {
    const lives = [1, 2, 3, 4].map((seed) => {
      const random = seededRandom(seed);
      return answersIn(
        each(5, () => [one(random() < 0.6 ? 'failed' : 'accepted', Math.floor(random() * 3))]),
        1_500,
      );
    });
    assert.ok(lives.flat().length <= 48, JSON.stringify(lives));
    for (const changes of lives)
      assert.ok(changes.filter(([, answer]) => answer === 'yes').length <= 2, JSON.stringify(changes));
  });

  for (const [interval, withinSeconds] of [
    [7, 60],
    [10, 50],
    [20, 100],
    [30, 130],
    [60, 240],
  ] as const)
    test(`soon after the bank has revoked the certificate, with a payment each ${interval} s`, () => {
      const traffic = each(interval, (second) => [one(second < 1_200 ? 'accepted' : revoked)]);
      assertCannotPay(traffic, 1_800, withinSeconds, 1_200);
    });

  test('with a payment each 7 s, of which the bank refuses 70 %, or all of them of two tenants because of the token', () => {
    const random = seededRandom(5);
    const most = each(7, () => [one(random() < 0.7 ? revoked : 'accepted')]);
    assert.ok(answersIn(most, 600).some(([second, answer]) => answer === 'no' && second <= 180));
    assertCannotPay(
      each(7, (second) => [one('401 TOKEN_INVALID', (second / 7) % 2)]),
      600,
      120,
    );
  });

  for (const interval of [120, 150, 240])
    test(`while the bank refuses a payment each ${interval} s, also in between`, () => {
      assertCannotPay(
        each(interval, () => [one(revoked)]),
        3_600,
        2 * interval,
      );
    });
});

for (const [result, expected] of [
  ['201 RJCT', 'some'],
  ['401 TOKEN_UNKNOWN', 'no'],
] as const)
  for (const [interval, withinSeconds] of [
    [40, 300],
    [120, 900],
  ] as const)
    test(`with a payment each ${interval} s, of three tenants and all answered ${result}, the answer is ${expected}`, () => {
      const traffic = each(interval, (second) => [
        one(second < 1_200 ? 'accepted' : result, (second / interval) % 3),
      ]);
      const [second, answer] = answersIn(traffic, 3_000).at(-1) ?? [0];
      assert.ok(answer === expected && second <= 1_200 + withinSeconds, `${answer} from ${second} s on`);
    });

describe('the answer stays as the last payments were', () => {
  const last = 1_200;
  /** Payments each second, of which these come to nothing, and nobody pays after the last one. */
  const until =
    (end: number, from: number, through: number): Traffic =>
    (second) =>
      second >= end ? [] : [one(second >= from && second < through ? 'failed' : 'accepted', second % 3)];

  test('while nobody tries to pay, for 15 minutes, if some of the last ones have failed', () => {
    const changes = answersIn(until(last + 6, last, last + 6), 2_300);
    assert.deepEqual(
      changes.map(([, answer]) => answer),
      ['yes', 'some', 'yes'],
      JSON.stringify(changes),
    );
    assert.ok((changes[2]?.[0] ?? 0) >= last + 900, JSON.stringify(changes));
  });

  test('while nobody tries to pay, if only the very last ones have failed: too few for an alert', () => {
    assert.deepEqual(answersIn(until(last, last - 3, last), 2_300), [[0, 'yes']]);
  });

  for (const [name, afterwards] of [
    ['nobody pays', () => []],
    ['few pay', each(100, () => [one('accepted')])],
  ] as const satisfies readonly (readonly [string, Traffic])[])
    test(`after 40 successes that end an outage, while ${name}`, () => {
      const traffic = until(last, last - 140, last - 40);
      const answers = answersIn((second) => (second < last ? traffic : afterwards)(second), 2_300);
      assert.equal(answers.at(-1)?.[1], 'yes', JSON.stringify(answers));
      assert.ok((answers.at(-1)?.[0] ?? 0) < last + 20, JSON.stringify(answers));
    });

  test('between five failures and enough successes, with a payment each 6 s', () => {
    const traffic = each(6, (second) => [one(second >= last && second < last + 30 ? 'failed' : 'accepted')]);
    const yes = answersIn(traffic, 2_300).filter(([, answer]) => answer === 'yes');
    assert.equal(yes.length, 2, JSON.stringify(yes));
  });
});

test('an outage of one product is one alert since its beginning, while it is found first as some failures of all', () => {
  const traffic: Traffic = (second) => [
    second % 10 < 3
      ? one(second < 120 ? 'accepted' : 'failed', second % 3, { product: instant })
      : one('accepted', second % 3),
  ];
  const lived = [...liveThrough(traffic, 400)]
    .map(({ alerts }) => alerts)
    .filter((alerts) => alerts.length > 0);
  for (const [alert, ...others] of lived) {
    assert.deepEqual(others, []);
    assert.ok(alert?.overSince === undefined && alert?.since === lived[0]?.[0]?.since, JSON.stringify(alert));
  }
  assert.match(lived[0]?.[0]?.text ?? '', /initiations in the last 60 s/);
  assert.match(lived.at(-1)?.[0]?.text ?? '', /initiations of payments\/instant/);
});

for (const seconds of [15, 60, 300])
  test(`an outage of ${seconds} s that ends is over once, also while its failures leave the windows`, () => {
    const traffic: Traffic = (second) => [
      one(second >= 300 && second < 300 + seconds ? 'failed' : 'accepted', second % 5),
    ];
    const answers = answersIn(traffic, 1_300).map(([, answer]) => answer);
    assert.equal(answers.lastIndexOf('yes'), answers.length - 1, String(answers));
    assert.equal(answers.filter((answer) => answer === 'yes').length, 2, String(answers));
  });

test('an outage is one alert since its beginning, while the bank fails and refuses in turn, and the circuit opens', () => {
  for (const [failing, results, names] of [
    [1, ['failed', revoked, 'blocked'], 3],
    [0.2, ['failed', 'blocked'], 1], // one for both reasons
  ] as const) {
    const random = seededRandom(6);
    const traffic: Traffic = (second) =>
      Array.from({ length: 5 }, () =>
        one(
          (random() < failing && results[Math.floor(second / 40) % results.length]) || 'accepted',
          second % 3,
        ),
      );
    const lived = [...liveThrough(traffic, 400)].slice(60).map(({ alerts }) => alerts);
    for (const [alert, ...others] of lived) {
      assert.ok(alert && alert.overSince === undefined, JSON.stringify(alert));
      assert.equal(alert.since, lived[0]?.[0]?.since);
      assert.deepEqual(others, []);
    }
    assert.equal(new Set(lived.map(([alert]) => alert?.id)).size, names);
  }
});

test('an environment that is no longer configured has no alerts', () => {
  const traffic: Traffic = () => [one('failed', 0, { environment: 'sandbox' })];
  const alertsWhile = (isConfigured: boolean) =>
    [...liveThrough(traffic, 30, { isConfigured: () => isConfigured })].at(-1)?.alerts.length;
  assert.deepEqual([alertsWhile(true), alertsWhile(false)], [1, 0]);
});

test('the text of a share says what it leaves out', () => {
  const [last] = [...liveThrough(() => [one('failed'), one('400 FORMAT_ERROR')], 30)].slice(-1);
  const texts = last?.alerts.map(({ text }) => text).join('\n') ?? '';
  assert.match(
    texts,
    /10 of 10 initiations in the last 10 s have no .*5xx\. Another 10 were refused for their content\./,
  );
});
