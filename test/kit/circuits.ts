/** Reads the circuits of a gateway, and makes calls in each lane. */

import { Agent } from 'node:http';
import type { Lane } from '../../src/pis/operations.ts';
import { callAdminApi } from './admin-api.ts';
import { type Call, call, type Reply } from './call.ts';
import type { GatewayUnderTest } from './gateway.ts';
import { initiation, statusRead, transfersPath } from './request.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

type AdminListener = Pick<GatewayUnderTest, 'adminUrl'>;

export const lanes = ['write', 'read', 'status'] as const satisfies readonly Lane[];

/** A call of each lane. The reads are for an unknown payment: the bank answers 404. */
export const callOf: Readonly<Record<Lane, Call>> = {
  write: initiation,
  read: { method: 'GET', path: `${transfersPath}/1234-wertiq-983` },
  status: statusRead,
};

/** A circuit in the admin API. */
export interface ShownCircuit {
  readonly environment: string;
  readonly lane: Lane;
  readonly state: string;
  readonly hold: string | null;
  readonly until: string | null;
  readonly reason: string | null;
  readonly cause: { readonly xRequestId: string; readonly why: string; readonly count: number } | null;
  /** Those whose circuit is not closed. */
  readonly tenants: readonly { readonly tenant: string; readonly state: string }[];
}

export async function circuitOf(listener: AdminListener, lane: Lane): Promise<ShownCircuit> {
  const circuits: readonly ShownCircuit[] = JSON.parse(
    (await callAdminApi(listener, 'GET', '/api/circuits')).text,
  );
  const found = circuits.find((circuit) => circuit.lane === lane);
  if (!found) throw new Error(`there is no circuit of ${lane}`);
  return found;
}

/** Waits until a circuit is in the given state. */
export const waitForCircuit = (listener: AdminListener, lane: Lane, state: string): Promise<void> =>
  until(
    10_000,
    `the circuit of ${lane} is ${state}`,
    async () => (await circuitOf(listener, lane)).state === state,
  );

/** Every change of a circuit in the log, as `write: closed > open`. */
export const loggedCircuitChanges = ({ logLines }: GatewayUnderTest): readonly string[] =>
  logLines
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message === 'circuit state changed')
    .map(({ lane, from, to }) => `${lane}: ${from} > ${to}`);

/** Sends that many calls, one after the other, on one connection. */
export async function askInTurn(life: TestScope, count: number, ask: (agent: Agent) => Promise<Reply>) {
  const agent = new Agent({ keepAlive: true });
  life.after(() => agent.destroy());
  const replies: Reply[] = [];
  for (let one = 0; one < count; one++) replies.push(await ask(agent));
  return replies;
}

export const ask = ({ url }: Pick<GatewayUnderTest, 'url'>, lane: Lane, agent?: Agent): Promise<Reply> =>
  call(url, callOf[lane], agent);
