/** Turns at the banks, shared by all instances; goes on whatever becomes of the state. */

import { insuredReservations } from '../../state/insured-reservations.ts';
import type { Reservations } from '../../state/ports.ts';
import { promptReservations } from '../../state/prompt-reservations.ts';

interface Settings {
  /** How many instances there are supposed to be: without the state, each takes its part. */
  readonly expectedInstances: () => number;
  /** Told whenever this instance begins to go on alone, and when it is with the others again. */
  readonly told: (alone: boolean) => void;
}

/** Never fails, and hardly waits for a state that is slow. */
export function createBankTurns(shared: Reservations, { expectedInstances, told }: Settings): Reservations {
  const part = () => 1 / expectedInstances();
  return insuredReservations(promptReservations(shared, part), { part, beginsWith: 'nothing', told });
}
