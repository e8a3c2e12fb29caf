/** An hour of quiet and an hour of ordinary noise raise no alert, and the same hour with a fault raises it soon: on a clock of the test. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { liveThrough, type Traffic } from '../../kit/alert-clock.ts';
import { initiations } from '../../kit/alert-facts.ts';
import { seededRandom } from '../../kit/random.ts';

const usual = [{ environment: 'production', refusedShare: 0.04, answerMs: 50 }];

interface Raised {
  readonly id: string;
  /** When it was there first and last: seconds. */
  readonly from: number;
  readonly through: number;
}

function alertsOfHour(traffic: Traffic): readonly Raised[] {
  const alerts = new Map<string, Raised>();
  for (const { second, alerts: all } of liveThrough(traffic, 3_600, { usual }))
    for (const { id, overSince } of all)
      if (overSince === undefined)
        alerts.set(id, { id, from: alerts.get(id)?.from ?? second, through: second });
  return [...alerts.values()];
}

/** Initiations at 2/s: 4 % refused with codes that TPPs cause, single time-outs, and now and then a TPP with a burst of faults. */
function ordinary(seed: number): Traffic {
  const random = seededRandom(seed);
  const refusals = ['400 FORMAT_ERROR', '401 TOKEN_INVALID', '400 PAYMENT_FAILED', '403 CONSENT_INVALID'];
  return (second) => {
    const count = Math.floor(random() * 5);
    const ones = Array.from({ length: count }, () => {
      const value = random();
      if (value < 0.04) return initiations(1, refusals[Math.floor(random() * refusals.length)] ?? '');
      if (value < 0.044) return initiations(1, 'failed', { bankMs: 10_000 });
      return initiations(1, 'accepted', { bankMs: Math.round(20 + 100 * random() ** 4) });
    });
    const burst =
      second % 600 === 300
        ? Array.from({ length: 6 }, () =>
            initiations(1, second % 1_200 === 300 ? '400 FORMAT_ERROR' : '401 TOKEN_EXPIRED'),
          )
        : [];
    return [...ones, ...burst];
  };
}

const from = 1_800;
const through = 1_890;
/** The bank answers everything in this way for 90 seconds. */
const during =
  (traffic: Traffic, result: string): Traffic =>
  (second) =>
    second < from || second >= through
      ? traffic(second)
      : traffic(second).map((one) => ({ ...one, result, bankMs: result === 'failed' ? 10_000 : one.bankMs }));

describe('in an hour', () => {
  test('without traffic, there is no alert', () => {
    assert.deepEqual(
      alertsOfHour(() => []),
      [],
    );
  });

  for (const seed of [1, 2, 3, 4, 5])
    test(`of ordinary noise (seed ${seed}), there is no alert`, () => {
      assert.deepEqual(alertsOfHour(ordinary(seed)), []);
    });

  for (const [result, id] of [
    ['401 CERTIFICATE_REVOKED', 'initiations-unauthorised'],
    ['400 PRODUCT_INVALID', 'initiations-refused'],
    ['failed', 'initiations-fail'],
    ['blocked', 'initiations-blocked'],
  ] as const)
    test(`in which all initiations are ${result} for 90 seconds, there is one alert within 15 seconds, and it ends within a minute`, () => {
      const alerts = alertsOfHour(during(ordinary(6), result));
      assert.deepEqual(
        alerts.map((alert) => alert.id),
        [id],
      );
      const [alert] = alerts;
      assert.ok(alert && alert.from - from < 15, `after ${(alert?.from ?? 0) - from} s`);
      assert.ok(alert.through - through < 60, `until ${alert.through - through} s after its end`);
    });

  test('in which the bank takes 4 seconds for 90 seconds, there is one alert within 15 seconds', () => {
    const traffic = ordinary(7);
    const alerts = alertsOfHour((second) =>
      traffic(second).map((one) =>
        second >= from && second < through && one.result !== 'failed' ? { ...one, bankMs: 4_000 } : one,
      ),
    );
    assert.deepEqual(
      alerts.map(({ id }) => id),
      ['bank-slow'],
    );
    assert.ok((alerts[0]?.from ?? 0) - from < 15);
  });
});
