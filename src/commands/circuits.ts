/** `penstock circuits`: shows the circuit of each environment and lane. `penstock circuits hold` and `release`: for one. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type CommandOutput, success } from './command-output.ts';

const causeBody = z.object({
  at: z.string(),
  why: z.string(),
  xRequestId: z.string(),
  operation: z.string(),
  tenant: z.string(),
  count: z.number(),
  calls: z.number(),
});

const circuitBody = z.object({
  environment: z.string(),
  lane: z.string(),
  state: z.string(),
  hold: z.string().nullable(),
  until: z.string().nullable(),
  reason: z.string().nullable(),
  cause: causeBody.nullable(),
  tenants: z.array(
    z.object({
      tenant: z.string(),
      state: z.string(),
      until: z.string().nullable(),
      reason: z.string().nullable(),
      cause: causeBody.nullable(),
    }),
  ),
});
type CircuitBody = z.output<typeof circuitBody>;

/** One line per lane, with its hold and the reason for its state, and one per tenant whose state is another one; below it, the cause. */
export async function showCircuits(call: AdminClient): Promise<CommandOutput> {
  const data = successBody(await call('GET', '/circuits'));
  const circuits = parseBody(z.array(circuitBody), data);
  const width = Math.max(...circuits.map(({ environment }) => environment.length));
  return success(
    circuits.flatMap((circuit) => formatCircuit(circuit, width)),
    data,
  );
}

interface ReleaseOptions {
  readonly environment: string;
  readonly lane: string;
  readonly reason: string;
}

interface HoldOptions extends ReleaseOptions {
  /** `open` or `closed`. */
  readonly hold: string;
  /** A duration such as `10min`; the gateway has a default. */
  readonly duration: string | undefined;
}

/** Prints the circuit afterwards. */
export const holdCircuit = (
  call: AdminClient,
  { hold, reason, duration, ...circuit }: HoldOptions,
): Promise<CommandOutput> =>
  changeCircuit(call, circuit, { hold, reason, ...(duration !== undefined && { for: duration }) });

/** Prints the circuit afterwards. */
export const releaseCircuit = (
  call: AdminClient,
  { reason, ...circuit }: ReleaseOptions,
): Promise<CommandOutput> => changeCircuit(call, circuit, { hold: null, reason });

async function changeCircuit(
  call: AdminClient,
  { environment, lane }: Pick<ReleaseOptions, 'environment' | 'lane'>,
  change: Readonly<Record<string, string | null>>,
): Promise<CommandOutput> {
  const path = `/circuits/${encodeURIComponent(environment)}/${encodeURIComponent(lane)}`;
  const data = successBody(await call('PUT', path, change));
  return success(formatCircuit(parseBody(circuitBody, data)), data);
}

/** @param width of the column with the environment, at least */
function formatCircuit(circuit: CircuitBody, width = 0): readonly string[] {
  const { environment, lane, state, hold, tenants } = circuit;
  const place = `${environment.padEnd(Math.max(width, 12))} ${lane.padEnd(7)}`;
  const held = hold === null ? '' : `held ${hold} `;
  return [
    `${place} ${state.padEnd(10)} ${held}${explain(circuit)}`.trimEnd(),
    ...causeLines(circuit),
    ...tenants
      .filter((each) => each.state !== state)
      .flatMap((each) => [
        `${place} ${each.state.padEnd(10)} for ${each.tenant} ${explain(each)}`.trimEnd(),
        ...causeLines(each),
      ]),
  ];
}

function causeLines({ cause }: Pick<CircuitBody, 'cause'>): readonly string[] {
  if (!cause) return [];
  const { at, operation, tenant, xRequestId, why, count, calls } = cause;
  return [
    `  cause: ${at}, ${operation} of ${tenant}, X-Request-ID ${xRequestId}: ${why}`,
    `  ${count} of ${calls} calls had failed when it opened`,
  ];
}

const explain = ({ until, reason }: Pick<CircuitBody, 'until' | 'reason'>) =>
  `${until === null ? '' : `until ${until} `}${reason ?? ''}`;
