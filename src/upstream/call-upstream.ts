/**
 * STAGE 7. Calls the bank: checks the circuit, waits for a permit, and sends, in this order. An open circuit uses no permit,
 * and only the behaviour of the bank changes a circuit.
 */

import type { Lane } from '../pis/operations.ts';
import { asGatewayError, outcomeUnknown } from '../request/errors.ts';
import type { DisconnectSignal, PisResponse, RoutedRequest } from '../request/messages.ts';
import type { RequestEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { Circuit } from './circuit/circuit.ts';
import type { RateLimiter } from './shaping/rate-limiter.ts';
import type { Transport } from './transport.ts';

/** What a call to one environment of the bank needs. */
export interface Upstream {
  readonly circuitOf: (lane: Lane, tenant: string) => Pick<Circuit, 'run' | 'effectiveState'>;
  readonly limiter: Pick<RateLimiter, 'run'>;
  readonly transport: Transport;
}

/** @param upstreamOf returns the upstream of an environment */
export function callUpstream(upstreamOf: (environment: string) => Upstream): Handler<RoutedRequest> {
  return async (request) => {
    const { operation, environment, client, deadlineAtMs, signal, writeAheadMark, recordEvent } = request;
    const { circuitOf, limiter, transport } = upstreamOf(environment.name);
    const call = { lane: operation.lane, tenant: client.tenant, deadlineAtMs, signal };
    const circuit = circuitOf(operation.lane, client.tenant);
    const startedAtMs = performance.now();
    let response: Promise<PisResponse> | undefined;
    try {
      return await circuit.run((beforeSending) =>
        limiter.run(call, async () => {
          beforeSending();
          recordEvent?.({ what: 'turn', waitedMs: performance.now() - startedAtMs });
          response = sendToBank(request, transport);
          return writeAheadMark ? untilDeadline(response, deadlineAtMs) : response;
        }),
      );
    } catch (thrown) {
      // The idempotency stage answers the TPP at the deadline, and still needs the late response.
      if (response) return response;
      recordEvent?.(refusalEvent(thrown, circuit, { waitedMs: performance.now() - startedAtMs, signal }));
      throw thrown;
    }
  };
}

/** For the circuit and the rate limiter, a write ends at its deadline, although its late response is still recorded. */
async function untilDeadline<Response>(response: Promise<Response>, atMs: number): Promise<Response> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => deadline.reject(outcomeUnknown()), Math.max(0, atMs - performance.now()));
  return Promise.race([response, deadline.promise]).finally(() => clearTimeout(timer));
}

async function sendToBank(request: RoutedRequest, transport: Transport): Promise<PisResponse> {
  const { operation, client, environment, headers, body, deadlineAtMs, writeAheadMark, recordEvent } =
    request;
  const sentAtMs = performance.now();
  const response = await transport.send({
    method: operation.method,
    lane: operation.lane,
    tenant: client.tenant,
    path: environment.basePath + operation.path,
    headers,
    body,
    deadlineAtMs,
    recordEvent,
    sendingMark: writeAheadMark && {
      markSending: () => writeAheadMark.markSending(environment.name),
      onDeadline: () => writeAheadMark.onDeadline(),
      lateAnswerUntilMs: writeAheadMark.lateAnswerUntilMs,
    },
  });
  return {
    ...response,
    servedFrom: 'bank',
    environment: environment.name,
    upstreamMs: performance.now() - sentAtMs,
  };
}

/** Why nothing was sent. */
function refusalEvent(
  thrown: unknown,
  circuit: Pick<Circuit, 'effectiveState'>,
  { waitedMs, signal }: { readonly waitedMs: number; readonly signal: DisconnectSignal | undefined },
): RequestEvent {
  const { code } = asGatewayError(thrown);
  if (code === 'CIRCUIT_OPEN') return { what: 'circuit-refused', state: circuit.effectiveState() };
  return signal?.aborted ? { what: 'caller-left', waitedMs } : { what: 'turn-refused', code, waitedMs };
}
