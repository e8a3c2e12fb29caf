/**
 * STAGE 6. Refuses if the circuit is open, waits for a turn, and sends, in this order: an open circuit costs no turn, and
 * only what the bank itself does moves a circuit.
 */

import { asGatewayError, unanswered } from '../flow/errors.ts';
import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler } from '../flow/stage.ts';
import type { Fact } from '../flow/trail.ts';
import type { Lane } from '../pis/operations.ts';
import type { Circuit } from './circuit/circuit.ts';
import type { Shaper } from './shaping/shaper.ts';
import type { Transport } from './transport.ts';

/** One environment of the bank, as calls reach it. */
export interface Upstream {
  readonly circuitOf: (lane: Lane) => Pick<Circuit, 'run' | 'view'>;
  readonly shaper: Pick<Shaper, 'run'>;
  readonly transport: Transport;
}

/** @param to the way to an environment, by its name */
export function callUpstream(to: (environment: string) => Upstream): Handler<RoutedRequest> {
  return async (request) => {
    const { operation, environment, client, deadlineAtMs, signal, fence, note } = request;
    const { circuitOf, shaper, transport } = to(environment.name);
    const call = { lane: operation.lane, tenant: client.tenant, deadlineAtMs, signal };
    const circuit = circuitOf(operation.lane);
    const askedAtMs = performance.now();
    let answer: Promise<PisResponse> | undefined;
    try {
      return await circuit.run((goOn) =>
        shaper.run(call, async () => {
          goOn();
          note?.({ what: 'turn', waitedMs: performance.now() - askedAtMs });
          answer = sent(request, transport);
          return fence ? byDeadline(answer, deadlineAtMs) : answer;
        }),
      );
    } catch (thrown) {
      if (answer) return answer; // which failed by itself, or is late: the duplicates' guard has told the TPP
      note?.(refusal(thrown, circuit, { waitedMs: performance.now() - askedAtMs, signal }));
      throw thrown;
    }
  };
}

/** Why nothing was sent. */
function refusal(
  thrown: unknown,
  circuit: Pick<Circuit, 'view'>,
  { waitedMs, signal }: { readonly waitedMs: number; readonly signal: AbortSignal | undefined },
): Fact {
  const { code } = asGatewayError(thrown);
  if (code === 'CIRCUIT_OPEN') {
    const { hold, state } = circuit.view();
    return { what: 'circuit-refused', state: hold ? 'held open' : state };
  }
  return signal?.aborted ? { what: 'caller-left', waitedMs } : { what: 'turn-refused', code, waitedMs };
}

/** To the circuit and the others who wait, a call whose answer is still listened for is over at its deadline. */
async function byDeadline<Answer>(answer: Promise<Answer>, atMs: number): Promise<Answer> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(unanswered()), Math.max(0, atMs - performance.now()));
  return Promise.race([answer, deadline.promise]).finally(() => clearTimeout(timer));
}

async function sent(request: RoutedRequest, transport: Transport): Promise<PisResponse> {
  const { operation, environment, headers, body, deadlineAtMs, fence, note } = request;
  const sentAtMs = performance.now();
  const answer = await transport.send({
    method: operation.method,
    lane: operation.lane,
    path: environment.basePath + operation.path,
    headers,
    body,
    deadlineAtMs,
    ...(note && { note }),
    ...(fence && {
      fence: { pass: () => fence.pass(environment.name), listenUntilMs: fence.listenUntilMs },
    }),
  });
  return {
    ...answer,
    servedFrom: 'bank',
    environment: environment.name,
    upstreamMs: performance.now() - sentAtMs,
  };
}
