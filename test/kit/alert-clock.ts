/** Lives through seconds of initiations on a clock of the test: what two instances count, and the alerts and the answer of each second. */

import { canPay } from '../../src/alerts/can-pay.ts';
import { type AlertFacts, findAlerts } from '../../src/alerts/find-alerts.ts';
import type { Alert } from '../../src/alerts/finding.ts';
import { mergeAlerts } from '../../src/alerts/merge-alerts.ts';
import { createRaisedAlerts } from '../../src/alerts/raised-alerts.ts';
import { createFleetSeconds } from '../../src/telemetry/fleet-seconds.ts';
import type { InitiationCount } from '../../src/telemetry/initiations.ts';
import { emptySecond } from '../../src/telemetry/live-stats.ts';
import { healthyFacts, noonMs } from './alert-facts.ts';

/** The initiations that end in a second. */
export type Traffic = (second: number) => readonly InitiationCount[];

interface LivedSecond {
  readonly second: number;
  readonly alerts: readonly Alert[];
  readonly answer: ReturnType<typeof canPay>;
}

/** Evaluates every second; two instances share the traffic. */
export function* liveThrough(
  traffic: Traffic,
  lengthSeconds: number,
  more: Partial<AlertFacts> = {},
): Generator<LivedSecond> {
  let nowMs = noonMs;
  const seconds = createFleetSeconds(() => nowMs);
  const raised = createRaisedAlerts();
  for (let second = 0; second < lengthSeconds; second += 1) {
    const at = Math.floor(nowMs / 1_000);
    nowMs += 1_000;
    const all = traffic(second);
    for (const [index, instance] of ['a', 'b'].entries()) {
      const own = all.filter((_, number) => number % 2 === index);
      const counts = { ...emptySecond(at), requests: own.length, initiations: own };
      seconds.add(instance, { from: noonMs / 1_000, through: at }, own.length > 0 ? [counts] : []);
    }
    const minute = seconds.recent(['a', 'b']).slice(-60);
    const facts = healthyFacts({
      nowMs,
      initiationsOf: seconds.initiations,
      quietSeconds: seconds.quietSeconds,
      requests: minute.reduce((sum, { requests }) => sum + requests, 0),
      ...more,
    });
    const alerts = mergeAlerts({ name: 'a', alerts: raised.update(findAlerts(facts), nowMs) }, []);
    yield { second, alerts, answer: canPay(alerts, 'production') };
  }
}
