/** When an alert begins and ends: not with a condition that flaps. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Finding } from '../../../src/alerts/finding.ts';
import { createRaisedAlerts } from '../../../src/alerts/raised-alerts.ts';
import { noonMs } from '../../kit/alert-facts.ts';

const slow: Finding = { id: 'bank-slow', severity: 'warning', environment: 'production', text: 'Slow.' };
const queue: Finding = { id: 'calls-queue', severity: 'warning', environment: 'production', text: 'Long.' };
const doubt: Finding = { id: 'in-doubt', severity: 'critical', environment: 'production', text: 'In doubt.' };

/** The texts at each of these seconds. */
function textsAt(evaluations: readonly (readonly [second: number, ...findings: Finding[]])[]) {
  const raised = createRaisedAlerts();
  return evaluations.map(([second, ...findings]) =>
    raised.update(findings, noonMs + second * 1_000).map(({ text }) => text),
  );
}

describe('an alert', () => {
  test('is raised at once, and says when its condition has ended, for 20 seconds', () => {
    assert.deepEqual(textsAt([[0, slow], [1, slow], [2], [20], [21]]), [
      ['Slow.'],
      ['Slow.'],
      ['Slow. Over since 12:00:01 UTC.'],
      ['Slow. Over since 12:00:01 UTC.'],
      [],
    ]);
  });

  test('about a lost instance is one alert, although its reports come and go', () => {
    const lost: Finding = { id: 'instance-lost', severity: 'warning', subject: 'a', text: 'Down.' };
    const counts = textsAt(Array.from({ length: 30 }, (_, at) => (at % 3 === 0 ? [at, lost] : [at])));
    assert.ok(counts.every((texts) => texts.length === 1));
  });

  test('that comes back within 20 seconds is the same one', () => {
    const raised = createRaisedAlerts();
    for (let second = 0; second < 300; second += 1)
      raised.update(Math.floor(second / 15) % 2 === 0 ? [slow] : [], noonMs + second * 1_000);
    const [alert] = raised.update([slow], noonMs + 300_000);
    assert.equal(alert?.sinceMs, noonMs);
  });

  test('whose condition must last is raised then, also if the condition was missing for a second', () => {
    const texts = textsAt([[0, queue], [1], [2, queue], [4, queue], [5, queue]]);
    assert.deepEqual(texts, [[], [], [], [], ['Long.']]);
  });

  test('whose condition must last is not raised by one that flaps', () => {
    const every4 = Array.from(
      { length: 60 },
      (_, index) => [index, ...(index % 4 === 0 ? [queue] : [])] as const,
    );
    assert.deepEqual(textsAt(every4).flat(), []);
  });

  test('of money ends when the last payment is resolved', () => {
    assert.deepEqual(textsAt([[0, doubt], [1]]), [['In doubt.'], []]);
  });

  test('has the time of its cause, if that is known', () => {
    const [alert] = createRaisedAlerts().update([{ ...doubt, sinceMs: 5 }], noonMs);
    assert.equal(alert?.sinceMs, 5);
  });

  test('keeps its severity and its time for 20 seconds when it becomes milder, unless it follows at once', () => {
    const critical: Finding = {
      id: 'initiations-fail',
      severity: 'critical',
      environment: 'production',
      text: 'most',
    };
    const raised = createRaisedAlerts();
    const shown = (finding: Finding, second: number) => {
      const [alert] = raised.update([finding], noonMs + second * 1_000);
      assert.equal(alert?.text, alert?.severity === 'critical' ? 'most' : 'some');
      return [alert?.severity, ((alert?.sinceMs ?? 0) - noonMs) / 1_000];
    };
    const warning: Finding = { ...critical, severity: 'warning', text: 'some' };
    assert.deepEqual(shown(critical, 0), ['critical', 0]);
    assert.deepEqual(shown(warning, 1), ['critical', 0]);
    assert.deepEqual(shown(critical, 19), ['critical', 0]);
    assert.deepEqual(shown(warning, 38), ['critical', 0]);
    assert.deepEqual(shown(warning, 39), ['warning', 0]);
    const circuit: Finding = { ...critical, id: 'circuit-open' };
    raised.update([circuit], noonMs);
    const [probation] = raised.update([{ ...circuit, severity: 'warning' }], noonMs + 1_000);
    assert.equal(probation?.severity, 'warning');
  });
});
