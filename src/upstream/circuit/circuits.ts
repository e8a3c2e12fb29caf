/** The circuits of one configuration: one for each environment and lane. */

import type { CircuitSettings } from '../../config/schema.ts';
import { type Lane, lanes } from '../../pis/operations.ts';
import { type Circuit, createCircuit } from './circuit.ts';
import type { CircuitChange, CircuitView } from './circuit-state.ts';
import type { Holds } from './holds.ts';
import type { Probe } from './probe.ts';

export interface Circuits {
  /** @throws Error if there is no such environment */
  of(environment: string, lane: Lane): Circuit;
  views(): readonly CircuitView[];
  /** For a reload: holds stay, what was measured begins anew in the circuits that follow. */
  close(): void;
}

interface Parts {
  /** How each environment is asked whether it is back. */
  readonly probes: ReadonlyMap<string, Probe>;
  readonly holds: Pick<Holds, 'of'>;
  readonly changed: (change: CircuitChange) => void;
}

export function createCircuits(settings: CircuitSettings, { probes, holds, changed }: Parts): Circuits {
  const circuits = new Map(
    [...probes].flatMap(([environment, probe]) =>
      lanes.map((lane) => [
        `${environment} ${lane}`,
        createCircuit({ environment, lane }, settings, { probe, holdOn: holds.of, changed }),
      ]),
    ),
  );
  return {
    of(environment, lane) {
      const circuit = circuits.get(`${environment} ${lane}`);
      if (!circuit) throw new Error(`there is no environment ${environment}`);
      return circuit;
    },
    views: () => Array.from(circuits.values(), (circuit) => circuit.view()),
    close() {
      for (const circuit of circuits.values()) circuit.close();
    },
  };
}
