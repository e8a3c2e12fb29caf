/** A circuit in front of a bank that a test makes well or unwell, on a time that the test sets. */

import type { TestContext } from 'node:test';
import type { CircuitSettings } from '../../../../src/config/schema.ts';
import type { Lane } from '../../../../src/pis/operations.ts';
import { asGatewayError, GatewayError } from '../../../../src/request/errors.ts';
import { type Circuit, type CircuitChange, createCircuit } from '../../../../src/upstream/circuit/circuit.ts';
import type { CallOutcome } from '../../../../src/upstream/circuit/classify-outcome.ts';
import type { Hold } from '../../../../src/upstream/circuit/holds.ts';
import { type SimulatedTime, simulateTime } from '../../../kit/simulated-time.ts';

export const settings: CircuitSettings = {
  failureRate: 0.5,
  minimumCalls: 10,
  window: 10_000,
  openFor: 10_000,
};

/** What becomes of a call: a status, or the code of an error. */
export type CallResult = number | GatewayError['code'];

export interface CircuitFixture {
  readonly time: SimulatedTime;
  readonly circuit: Circuit;
  /** Calls and probes that reached the bank, such as `write` and `probe`. */
  readonly reached: readonly string[];
  readonly changes: readonly CircuitChange[];
  /** What the next probes bring. */
  probeOutcome: CallOutcome;
  hold: Hold | undefined;
  /** A call, and what it came to: `200`, `CIRCUIT_OPEN 7` with the seconds to wait, or another code. */
  call(outcome?: CallResult): Promise<string>;
  /** A call that is under way until the returned function says what becomes of it. */
  begin(): { readonly end: (outcome: CallResult) => void; readonly result: Promise<string> };
  /** Calls until the circuit opens. */
  fail(times?: number): Promise<void>;
}

export function startCircuit(
  t: TestContext,
  lane: Lane,
  over: Partial<CircuitSettings> = {},
): CircuitFixture {
  const time = simulateTime(t);
  const reached: string[] = [];
  const changes: CircuitChange[] = [];
  const place = { environment: 'sandbox', lane };

  const world: CircuitFixture = {
    time,
    reached,
    changes,
    probeOutcome: 'well',
    hold: undefined,
    circuit: createCircuit(
      place,
      { ...settings, ...over },
      {
        probe: async () => {
          reached.push('probe');
          return world.probeOutcome;
        },
        holdOf: () => world.hold,
        onChange: (change) => void changes.push(change),
        now: time.now,
        wall: time.now,
      },
    ),
    call(outcome = 200) {
      const { end, result } = world.begin();
      end(outcome);
      return result;
    },
    begin() {
      const { promise, resolve } = Promise.withResolvers<CallResult>();
      const result = world.circuit
        .run(async (goOn) => {
          goOn();
          reached.push(lane);
          const outcome = await promise;
          if (typeof outcome === 'string') throw new GatewayError(outcome, 'as the test says');
          return { status: outcome };
        })
        .then(({ status }) => String(status), describeError);
      return { end: resolve, result };
    },
    async fail(times = 10) {
      for (let one = 0; one < times; one++) await world.call('UPSTREAM_UNREACHED');
      await time.settle();
    },
  };
  t.after(() => world.circuit.close());
  return world;
}

function describeError(thrown: unknown): string {
  const { code, headers } = asGatewayError(thrown);
  return [code, ...headers.map(([, value]) => value)].join(' ');
}
