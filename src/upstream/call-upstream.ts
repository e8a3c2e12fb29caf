/**
 * STAGE 7. Calls the bank: checks the circuit, waits for a permit, and sends, in this order. An open circuit uses no permit,
 * and only the behaviour of the bank changes a circuit.
 */

import type { Lane } from '../pis/operations.ts';
import { resourceAtBank } from '../request/bank-ids.ts';
import { isEncoded } from '../request/content-coding.ts';
import { asGatewayError } from '../request/errors.ts';
import { errorCodeIn, meaningOf } from '../request/meaning.ts';
import type {
  DisconnectSignal,
  Meaning,
  PisRequest,
  PisResponse,
  RequestedPermit,
  RoutedRequest,
} from '../request/messages.ts';
import { type Content, contentOf, transactionStatusIn } from '../request/read-content.ts';
import type { RequestEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { Admission, Circuit } from './circuit/circuit.ts';
import { type CallOutcome, classifyAnswer, classifyError } from './circuit/classify-outcome.ts';
import type { FailedCall } from './circuit/first-failure.ts';
import type { RateLimiter } from './shaping/rate-limiter.ts';
import { LateResponseError, type OutboundRequest, type Transport } from './transport.ts';
import type { BankResponse } from './upstream-call.ts';

/** The parts that call one environment of the bank. */
export interface Upstream {
  readonly circuitOf: (
    lane: Lane,
    tenant: string,
  ) => Pick<Circuit, 'admit' | 'renew' | 'complete' | 'effectiveState'>;
  readonly limiter: Pick<RateLimiter, 'run' | 'prefetch'>;
  readonly transport: Transport;
}

/** Requests a permit to call an environment as `request.permit`, before the request is ready to be sent there. */
export type PrefetchPermit = (request: PisRequest, environment: string) => void;

/** @param upstreamOf returns the upstream of an environment; `undefined` if there is none */
export const createPrefetchPermit =
  (
    upstreamOf: (environment: string) => Pick<Upstream, 'circuitOf' | 'limiter'> | undefined,
  ): PrefetchPermit =>
  (request, environment) => {
    const { operation, client } = request;
    const upstream = client.environments.includes(environment) ? upstreamOf(environment) : undefined;
    request.permit?.release(); // one of an earlier claim, or for another environment
    request.permit =
      upstream?.circuitOf(operation.lane, client.tenant).effectiveState() === 'closed'
        ? upstream.limiter.prefetch({ lane: operation.lane, tenant: client.tenant })
        : undefined;
  };

/** @param upstreamOf returns the upstream of an environment */
export function callUpstream(upstreamOf: (environment: string) => Upstream): Handler<RoutedRequest> {
  return (request) => {
    const { operation, environment, client, deadlineAtMs, signal, recordEvent } = request;
    const { circuitOf, limiter, transport } = upstreamOf(environment.name);
    const circuit = circuitOf(operation.lane, client.tenant);
    const startedAtMs = performance.now();
    let sentAtMs: number | undefined;
    let admission: Admission;

    const refuse = (thrown: unknown): Promise<never> => {
      recordEvent?.(refusalEvent(thrown, circuit, { waitedMs: performance.now() - startedAtMs, signal }));
      return Promise.reject(thrown);
    };
    const send = (): Promise<BankResponse> => {
      try {
        admission = circuit.renew(admission);
      } catch (thrown) {
        return Promise.reject(thrown);
      }
      sentAtMs = performance.now();
      recordEvent?.({ what: 'permit', waitedMs: sentAtMs - startedAtMs });
      return transport.send(outboundRequest(request));
    };
    const toResponse = (answer: BankResponse): PisResponse | Promise<PisResponse> => {
      const upstreamMs = performance.now() - (sentAtMs ?? startedAtMs);
      // A short error of the bank is read for the record of the request.
      if (operation.lane !== 'write' && !isShortError(answer)) return responseOf(request, answer, upstreamMs);
      const content = contentOf(answer);
      return content instanceof Promise
        ? content.then((read) => responseOf(request, answer, upstreamMs, read))
        : responseOf(request, answer, upstreamMs, content);
    };
    const complete = (response: PisResponse): PisResponse => {
      const { status, meaning } = response;
      const outcome = classifyAnswer(status, meaning);
      const why = meaning?.why ?? `the bank answered ${status}`;
      circuit.complete(admission, outcome, isFailure(outcome) ? failedCall(request, why) : undefined);
      return response;
    };
    const onResponse = (answer: BankResponse): PisResponse | Promise<PisResponse> => {
      const response = toResponse(answer);
      return response instanceof Promise ? response.then(complete) : complete(response);
    };
    const onError = (thrown: unknown): Promise<PisResponse> => {
      const outcome = classifyError(thrown);
      const failed = isFailure(outcome) ? failedCall(request, describeError(thrown)) : undefined;
      circuit.complete(admission, outcome, failed);
      // The idempotency stage answers the TPP at the deadline, and still needs the late response.
      if (thrown instanceof LateResponseError) return thrown.response.then(toResponse);
      return sentAtMs === undefined ? refuse(thrown) : Promise.reject(thrown);
    };

    try {
      admission = circuit.admit();
    } catch (thrown) {
      return refuse(thrown);
    }
    const permit = permitFor(request);
    const { lane, paymentProduct: product, paymentId: payment } = operation;
    const call = { lane, tenant: client.tenant, product, payment, deadlineAtMs, signal, permit };
    return limiter.run(call, send).then(onResponse, onError);
  };
}

/** @param content of the answer to a write, which is read once, here, and of an error */
function responseOf(
  { operation, environment, writeAheadMark, recordEvent }: RoutedRequest,
  answer: BankResponse,
  upstreamMs: number,
  content?: Content,
): PisResponse {
  const { status, headers, body } = answer;
  const isWrite = operation.lane === 'write';
  if (isWrite && content?.kind === 'unreadable') recordEvent?.({ what: 'unreadable', why: content.why });
  const meaning =
    isWrite && content
      ? meaningOf(operation, answer, content, writeAheadMark?.followsReleasedAttempt ?? false)
      : undefined;
  const code = content && (status >= 400 || meaning) ? bankErrorIn(status, meaning, content) : undefined;
  if (code !== undefined) recordEvent?.({ what: 'bank-error', code });
  return {
    status,
    headers,
    body,
    json: content?.kind === 'json' ? content.json : undefined,
    meaning,
    servedFrom: 'bank',
    environment: environment.name,
    upstreamMs,
  };
}

/** A bank may create a payment only to reject it. */
function bankErrorIn(status: number, meaning: Meaning | undefined, content: Content): string | undefined {
  const isRejected = meaning !== undefined && transactionStatusIn(content) === 'RJCT';
  if (status < 400 && !isRejected && meaning?.outcome !== 'refused') return undefined;
  return errorCodeIn(content) ?? (isRejected ? 'RJCT' : undefined);
}

/** The errors of banks are short: to read a long one would delay other requests. Bytes. */
const maxErrorBytes = 16 * 1024;

const isShortError = (answer: BankResponse): boolean =>
  answer.status >= 400 && answer.body.length <= maxErrorBytes && !isEncoded(answer);

const isFailure = (outcome: CallOutcome) => outcome === 'failure' || outcome === 'unreachable';

const failedCall = ({ requestId, operation, client }: RoutedRequest, why: string): FailedCall => ({
  xRequestId: requestId,
  operation: operation.name,
  tenant: client.tenant,
  why,
});

/** `UPSTREAM_UNREACHED: The bank is unreachable; nothing was sent. Try again later. (ECONNREFUSED)` */
function describeError(thrown: unknown): string {
  const { code, message, cause } = asGatewayError(thrown);
  const systemCode = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
  return `${code}: ${message}${systemCode}`;
}

/** Returns the permit that was requested in advance. Releases it if it is for another environment than that of the request. */
function permitFor({ environment, permit }: RoutedRequest): RequestedPermit | undefined {
  if (permit?.environment === environment.name) return permit;
  permit?.release();
  return undefined;
}

function outboundRequest(request: RoutedRequest): OutboundRequest {
  const { operation, environment, writeAheadMark } = request;
  return {
    method: operation.method,
    lane: operation.lane,
    tenant: request.client.tenant,
    path:
      environment.prefixes[operation.name] + resourceAtBank(operation, request.bankIds) + operation.search,
    headers: request.headers,
    body: request.body,
    deadlineAtMs: request.deadlineAtMs,
    recordEvent: request.recordEvent,
    onSent: request.onSent,
    sendingMark: writeAheadMark && {
      markSending: () => writeAheadMark.markSending(environment.name),
      onDeadline: () => writeAheadMark.onDeadline(),
      lateAnswerUntilMs: request.deadlineAtMs + writeAheadMark.lateAnswerMs,
    },
  };
}

/** The event of a call that was not sent. */
function refusalEvent(
  thrown: unknown,
  circuit: Pick<Circuit, 'effectiveState'>,
  { waitedMs, signal }: { readonly waitedMs: number; readonly signal: DisconnectSignal | undefined },
): RequestEvent {
  const { code } = asGatewayError(thrown);
  if (code === 'CIRCUIT_OPEN') return { what: 'circuit-refused', state: circuit.effectiveState() };
  return signal?.aborted
    ? { what: 'client-disconnected', waitedMs }
    : { what: 'queue-refused', code, waitedMs };
}
