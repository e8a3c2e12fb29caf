/** A circuit with simulated calls, probes and time. */

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

/** How a call ends: a status, or the code of an error. */
export type CallResult = number | GatewayError['code'];

export interface CircuitFixture {
  readonly time: SimulatedTime;
  readonly circuit: Circuit;
  /** Calls and probes that reached the bank, as `write` or `probe`. */
  readonly reached: readonly string[];
  readonly changes: readonly CircuitChange[];
  /** The outcome of the next probes. */
  probeOutcome: CallOutcome;
  hold: Hold | undefined;
  /** Makes a call. @returns `200`, `CIRCUIT_OPEN 7` with the seconds of Retry-After, or another code */
  call(outcome?: CallResult): Promise<string>;
  /** Starts a call that lasts until `end` is called. */
  begin(): { readonly end: (outcome: CallResult) => void; readonly result: Promise<string> };
  /** Makes calls that fail. */
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

  const fixture: CircuitFixture = {
    time,
    reached,
    changes,
    probeOutcome: 'success',
    hold: undefined,
    circuit: createCircuit(
      place,
      { ...settings, ...over },
      {
        probe: async () => {
          reached.push('probe');
          return fixture.probeOutcome;
        },
        holdOf: () => fixture.hold,
        onChange: (change) => void changes.push(change),
        now: time.now,
        wall: time.now,
      },
    ),
    call(outcome = 200) {
      const { end, result } = fixture.begin();
      end(outcome);
      return result;
    },
    begin() {
      const { promise, resolve } = Promise.withResolvers<CallResult>();
      const result = fixture.circuit
        .run(async (beforeSending) => {
          beforeSending();
          reached.push(lane);
          const outcome = await promise;
          if (typeof outcome === 'string') throw new GatewayError(outcome, 'simulated');
          return { status: outcome };
        })
        .then(({ status }) => String(status), describeError);
      return { end: resolve, result };
    },
    async fail(times = 10) {
      for (let count = 0; count < times; count++) await fixture.call('UPSTREAM_UNREACHED');
      await time.settle();
    },
  };
  t.after(() => fixture.circuit.close());
  return fixture;
}

function describeError(thrown: unknown): string {
  const { code, headers } = asGatewayError(thrown);
  return [code, ...headers.map(([, value]) => value)].join(' ');
}
