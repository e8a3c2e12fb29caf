/**
 * What is usual for the initiations of an environment: that of the median hour, so that an incident of some hours does not become usual.
 * An hour with few initiations says little about the others.
 */

import type { InitiationCount } from '../telemetry/initiations.ts';
import { isAnswered, isRefused, type UsualInitiations } from './initiation-findings.ts';

/** What became of the initiations of an hour. */
interface HourlyInitiations extends Omit<InitiationCount, 'product' | 'tenants'> {
  /** Hours since 1970. */
  readonly hour: number;
}

/** An hour counts with so many initiations. */
const minInitiations = 20;
/** With fewer hours, nothing is usual. */
const minHours = 3;

/** @param currentHour does not count: it may be that of an incident */
export function usualInitiationsOf(
  day: readonly HourlyInitiations[],
  currentHour: number,
): readonly UsualInitiations[] {
  const past = day.filter(({ hour }) => hour !== currentHour);
  return [...Map.groupBy(past, ({ environment }) => environment)].flatMap(([environment, ofDay]) => {
    const hours = [...Map.groupBy(ofDay, ({ hour }) => hour).values()]
      .map(hourOf)
      .filter(({ initiations }) => initiations >= minInitiations);
    if (hours.length < minHours) return [];
    const answered = hours.filter((hour) => hour.answered > 0);
    return [
      {
        environment,
        refusedShare: lowerMedian(hours.map(({ refused, initiations }) => refused / initiations)),
        answerMs: lowerMedian(answered.map((hour) => hour.bankMs / hour.answered)),
      },
    ];
  });
}

function hourOf(hourly: readonly HourlyInitiations[]) {
  const counts = hourly.map((one) => ({ ...one, product: '', tenants: [] }));
  const sum = (all: readonly InitiationCount[]) => all.reduce((total, { count }) => total + count, 0);
  const answered = counts.filter(isAnswered);
  return {
    initiations: sum(counts),
    refused: sum(counts.filter(isRefused)),
    answered: sum(answered),
    bankMs: answered.reduce((total, { bankMs }) => total + bankMs, 0),
  };
}

const lowerMedian = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) / 2)] ?? 0;
