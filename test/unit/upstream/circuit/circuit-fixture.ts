/** The circuits of one lane with simulated calls, probes and time. */

import type { TestContext } from 'node:test';
import type { CircuitSettings } from '../../../../src/config/schema.ts';
import type { Lane } from '../../../../src/pis/operations.ts';
import { asGatewayError, GatewayError } from '../../../../src/request/errors.ts';
import type { Circuit } from '../../../../src/upstream/circuit/circuit.ts';
import {
  type CallOutcome,
  classifyAnswer,
  classifyError,
  type ProbeOutcome,
} from '../../../../src/upstream/circuit/classify-outcome.ts';
import type { FailedCall } from '../../../../src/upstream/circuit/first-failure.ts';
import type { Hold } from '../../../../src/upstream/circuit/holds.ts';
import {
  type CircuitChange,
  createTenantCircuits,
  type TenantCircuits,
} from '../../../../src/upstream/circuit/tenant-circuits.ts';
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
  readonly circuits: TenantCircuits;
  /** Of the tenant `shop`, which makes the calls unless a test names another one. */
  readonly circuit: Circuit;
  /** Calls and probes that reached the bank, as `write` or `probe`. */
  readonly reached: readonly string[];
  readonly changes: readonly CircuitChange[];
  /** The outcome of the next probes. */
  probeOutcome: ProbeOutcome;
  hold: Hold | undefined;
  /** Makes a call. @returns `200`, `CIRCUIT_OPEN 7` with the seconds of Retry-After, or another code */
  call(outcome?: CallResult, tenant?: string): Promise<string>;
  /** Starts a call that lasts until `end` is called. */
  begin(tenant?: string): { readonly end: (outcome: CallResult) => void; readonly result: Promise<string> };
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
  let calls = 0;
  const place = { environment: 'sandbox', lane };

  const circuits = createTenantCircuits(
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
  );
  const fixture: CircuitFixture = {
    time,
    reached,
    changes,
    probeOutcome: 'success',
    hold: undefined,
    circuits,
    circuit: circuits.of('shop'),
    call(outcome = 200, tenant) {
      const { end, result } = fixture.begin(tenant);
      end(outcome);
      return result;
    },
    begin(tenant = 'shop') {
      const { promise, resolve } = Promise.withResolvers<CallResult>();
      calls += 1;
      const called = { xRequestId: `call ${calls}`, operation: 'anOperation', tenant };
      const send = async () => {
        reached.push(lane);
        const outcome = await promise;
        if (typeof outcome === 'string') throw new GatewayError(outcome, 'simulated');
        return { status: outcome };
      };
      const response = callThrough(circuits.of(tenant), send, undefined, called);
      return { end: resolve, result: response.then(({ status }) => String(status), describeError) };
    },
    async fail(times = 10) {
      for (let count = 0; count < times; count++) await fixture.call('UPSTREAM_UNREACHED');
      await time.settle();
    },
  };
  t.after(() => circuits.close());
  return fixture;
}

/**
 * Makes a call, as call-upstream.ts does.
 *
 * @param permit what the call waits for before it is sent
 * @param called what operators should know of the call
 */
export async function callThrough(
  circuit: Circuit,
  send: () => Promise<{ readonly status: number }>,
  permit?: Promise<void>,
  called: Omit<FailedCall, 'why'> = { xRequestId: 'a call', operation: 'anOperation', tenant: 'shop' },
): Promise<{ readonly status: number }> {
  let admission = circuit.admit();
  let outcome: CallOutcome = 'neutral';
  let why = '';
  try {
    if (permit) await permit;
    admission = circuit.renew(admission);
    const response = await send();
    outcome = classifyAnswer(response.status, undefined);
    why = `status ${response.status}`;
    return response;
  } catch (thrown) {
    outcome = classifyError(thrown);
    why = asGatewayError(thrown).code;
    throw thrown;
  } finally {
    const isFailure = outcome === 'failure' || outcome === 'unreachable';
    circuit.complete(admission, outcome, isFailure ? { ...called, why } : undefined);
  }
}

function describeError(thrown: unknown): string {
  const { code, headers } = asGatewayError(thrown);
  return [code, ...headers.map(([, value]) => value)].join(' ');
}
