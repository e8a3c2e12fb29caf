/** What is usual for the initiations of an environment: that of the median hour, so that an incident of some hours does not become usual. */

import type { InitiationCount } from '../telemetry/initiations.ts';
import { isAnswered, isRefused, type UsualInitiations } from './initiation-findings.ts';

/** What became of the initiations of an hour. */
interface HourlyInitiations extends Omit<InitiationCount, 'product' | 'tenants'> {
  readonly hour: number;
}

export function usualInitiationsOf(day: readonly HourlyInitiations[]): readonly UsualInitiations[] {
  return Array.from(
    Map.groupBy(day, ({ environment }) => environment),
    ([environment, ofDay]) => {
      const hours = [...Map.groupBy(ofDay, ({ hour }) => hour).values()].map(hourOf);
      const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
      return {
        environment,
        initiations: sum(hours.map(({ initiations }) => initiations)),
        refusedShare: lowerMedian(hours.map(({ refused, initiations }) => refused / initiations)),
        answered: sum(hours.map(({ answered }) => answered)),
        answerMs: lowerMedian(
          hours.filter(({ answered }) => answered > 0).map(({ answered, bankMs }) => bankMs / answered),
        ),
      };
    },
  );
}

function hourOf(hourly: readonly HourlyInitiations[]) {
  const counts = hourly.map((one) => ({ ...one, product: '', tenants: 0 }));
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
