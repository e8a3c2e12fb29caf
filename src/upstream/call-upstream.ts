/**
 * STAGE 6. Refuses if the circuit is open, waits for a turn, and sends, in this order: an open circuit costs no turn, and
 * only what the bank itself does moves a circuit.
 */

import type { Lane } from '../pis/operations.ts';
import { asGatewayError, outcomeUnknown } from '../request/errors.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { RequestEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { Circuit } from './circuit/circuit.ts';
import type { RateLimiter } from './shaping/rate-limiter.ts';
import type { Transport } from './transport.ts';

/** One environment of the bank, as calls reach it. */
export interface Upstream {
  readonly circuitOf: (lane: Lane) => Pick<Circuit, 'run' | 'view'>;
  readonly limiter: Pick<RateLimiter, 'run'>;
  readonly transport: Transport;
}

/** @param upstreamOf the way to an environment, by its name */
export function callUpstream(upstreamOf: (environment: string) => Upstream): Handler<RoutedRequest> {
  return async (request) => {
    const { operation, environment, client, deadlineAtMs, signal, writeAheadMark, recordEvent } = request;
    const { circuitOf, limiter, transport } = upstreamOf(environment.name);
    const call = { lane: operation.lane, tenant: client.tenant, deadlineAtMs, signal };
    const circuit = circuitOf(operation.lane);
    const askedAtMs = performance.now();
    let answer: Promise<PisResponse> | undefined;
    try {
      return await circuit.run((goOn) =>
        limiter.run(call, async () => {
          goOn();
          recordEvent?.({ what: 'turn', waitedMs: performance.now() - askedAtMs });
          answer = sendToBank(request, transport);
          return writeAheadMark ? untilDeadline(answer, deadlineAtMs) : answer;
        }),
      );
    } catch (thrown) {
      if (answer) return answer; // which failed by itself, or is late: the duplicates' guard has told the TPP
      recordEvent?.(refusalEvent(thrown, circuit, { waitedMs: performance.now() - askedAtMs, signal }));
      throw thrown;
    }
  };
}

/** Why nothing was sent. */
function refusalEvent(
  thrown: unknown,
  circuit: Pick<Circuit, 'view'>,
  { waitedMs, signal }: { readonly waitedMs: number; readonly signal: AbortSignal | undefined },
): RequestEvent {
  const { code } = asGatewayError(thrown);
  if (code === 'CIRCUIT_OPEN') {
    const { hold, state } = circuit.view();
    return { what: 'circuit-refused', state: hold ? 'held open' : state };
  }
  return signal?.aborted ? { what: 'caller-left', waitedMs } : { what: 'turn-refused', code, waitedMs };
}

/** To the circuit and the others who wait, a call whose answer is still listened for is over at its deadline. */
async function untilDeadline<Answer>(answer: Promise<Answer>, atMs: number): Promise<Answer> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(outcomeUnknown()), Math.max(0, atMs - performance.now()));
  return Promise.race([answer, deadline.promise]).finally(() => clearTimeout(timer));
}

async function sendToBank(request: RoutedRequest, transport: Transport): Promise<PisResponse> {
  const { operation, environment, headers, body, deadlineAtMs, writeAheadMark, recordEvent } = request;
  const sentAtMs = performance.now();
  const answer = await transport.send({
    method: operation.method,
    lane: operation.lane,
    path: environment.basePath + operation.path,
    headers,
    body,
    deadlineAtMs,
    ...(recordEvent && { recordEvent: recordEvent }),
    ...(writeAheadMark && {
      sendingMark: {
        markSending: () => writeAheadMark.markSending(environment.name),
        lateAnswerUntilMs: writeAheadMark.lateAnswerUntilMs,
      },
    }),
  });
  return {
    ...answer,
    servedFrom: 'bank',
    environment: environment.name,
    upstreamMs: performance.now() - sentAtMs,
  };
}
