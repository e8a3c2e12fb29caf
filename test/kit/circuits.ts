/** The circuits of a gateway under test, and one call of each lane. */

import { Agent } from 'node:http';
import type { Lane } from '../../src/pis/operations.ts';
import { callAdminApi } from './admin-api.ts';
import { type Call, call, type Reply } from './call.ts';
import type { GatewayUnderTest } from './gateway.ts';
import type { Life } from './life.ts';
import { initiation, statusRead, transfers } from './request.ts';
import { until } from './within.ts';

type AdminListener = Pick<GatewayUnderTest, 'adminUrl'>;

export const lanes = ['write', 'read', 'status'] as const satisfies readonly Lane[];

/** A call of each lane, on a payment that no bank knows: it answers the reads with 404. */
export const callOf: Readonly<Record<Lane, Call>> = {
  write: initiation,
  read: { method: 'GET', path: `${transfers}/1234-wertiq-983` },
  status: statusRead,
};

/** As operators see it. */
export interface ShownCircuit {
  readonly environment: string;
  readonly lane: Lane;
  readonly state: string;
  readonly hold: string | null;
  readonly until: string | null;
  readonly reason: string | null;
}

export async function circuitOf(door: AdminListener, lane: Lane): Promise<ShownCircuit> {
  const circuits: readonly ShownCircuit[] = JSON.parse(
    (await callAdminApi(door, 'GET', '/api/circuits')).text,
  );
  const found = circuits.find((one) => one.lane === lane);
  if (!found) throw new Error(`there is no circuit of ${lane}`);
  return found;
}

/** Waits until a circuit is in a state. */
export const waitForCircuit = (door: AdminListener, lane: Lane, state: string): Promise<void> =>
  until(
    10_000,
    `the circuit of ${lane} is ${state}`,
    async () => (await circuitOf(door, lane)).state === state,
  );

/** Every change that the log tells of, as `write: closed > open`. */
export const loggedCircuitChanges = ({ logLines }: GatewayUnderTest): readonly string[] =>
  logLines
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message === 'a circuit has changed')
    .map(({ lane, from, to }) => `${lane}: ${from} > ${to}`);

/** Sends that many calls, one after the other, on one connection. */
export async function askInTurn(life: Life, count: number, ask: (agent: Agent) => Promise<Reply>) {
  const agent = new Agent({ keepAlive: true });
  life.after(() => agent.destroy());
  const replies: Reply[] = [];
  for (let one = 0; one < count; one++) replies.push(await ask(agent));
  return replies;
}

export const ask = ({ url }: Pick<GatewayUnderTest, 'url'>, lane: Lane, agent?: Agent): Promise<Reply> =>
  call(url, callOf[lane], agent);
