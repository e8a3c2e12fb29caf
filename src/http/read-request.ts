/**
 * Reads a request of the public API, or refuses it.
 *
 * Refusals come in a fixed order: framing and path (400), shape (404), method (405), overload (503), client (401),
 * headers (400), environment (403), quota (429), body (413). The bank has received nothing of a request that is refused here.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HeaderField } from '../pis/headers.ts';
import {
  type Lane,
  type Matcher,
  mayHaveBody,
  type Operation,
  type OptionalOperation,
} from '../pis/operations.ts';
import { emptyBody } from '../request/body-buffer.ts';
import { GatewayError } from '../request/errors.ts';
import type { Client, PisRequest } from '../request/messages.ts';
import { prefersEvents } from './accept.ts';
import type { AuthenticateClient } from './authenticate-client.ts';
import { createBodyMemoryBudget } from './body-memory-budget.ts';
import { ClientDisconnect } from './client-disconnect.ts';
import type { CheckQuota, PendingQuota } from './quota.ts';
import {
  arrivedBody,
  awaitEmptyBody,
  hasBody,
  incompleteRequest,
  readBody,
  refuseOversizedBody,
} from './read-body.ts';
import type { RequestHead } from './request-head.ts';

interface RequestReaderSettings {
  readonly match: Matcher;
  /** @throws GatewayError OVERLOADED while requests of this lane are shed */
  readonly admit: (lane: Lane) => void;
  readonly authenticate: AuthenticateClient;
  readonly checkQuota: CheckQuota;
  /** Names of all configured environments. */
  readonly environments: readonly string[];
  readonly maxBodyBytes: number;
  /** From the arrival of the request, in milliseconds; the longest of all environments. */
  readonly deadlineMs: Readonly<Record<Lane, number>>;
}

/**
 * @param addField adds a field to the response, also to that of an error
 * @returns the request; a promise if it must wait for its body, or for the check of its quota. If it need not wait for a check
 *   that is under way, the check is `quota` of the request
 * @throws GatewayError; the bank has received nothing
 */
export type ReadRequest = (
  incoming: IncomingMessage,
  head: RequestHead,
  outgoing: ServerResponse,
  addField: (field: HeaderField) => void,
) => PisRequest | Promise<PisRequest>;

/** Limit of all request bodies together while they are received. The limit of V8's heap does not include Buffers. */
const maxBodyMemoryBytes = 256 * 1024 * 1024;

export function createRequestReader(settings: RequestReaderSettings): ReadRequest {
  const { match, admit, authenticate, checkQuota, environments, maxBodyBytes, deadlineMs } = settings;
  const memory = createBodyMemoryBudget(maxBodyMemoryBytes);

  const readHead = (incoming: IncomingMessage, head: RequestHead, outgoing: ServerResponse): PisRequest => {
    const arrivedAtMs = performance.now();
    if (head.error) throw closing(outgoing, head.error);
    const operation = operationOf(match, incoming);
    admit(operation.lane);
    const client = authenticate(incoming.socket, head.apiKey);
    head.client = client;
    if (head.requestId === undefined) throw requestIdInvalid();
    if (!mayHaveBody(operation) && hasBody(incoming, head)) throw unexpectedBody(operation, outgoing);
    const wantsEvents = operation.readsStatus && prefersEvents(head.accept);
    return {
      operation,
      client,
      requestId: head.requestId,
      mayListen: head.mayListen || wantsEvents,
      wantsEvents,
      requestedEnvironment: requestedEnvironmentIn(head, environments, client),
      headers: head.outbound,
      tppHeaders: head.outbound,
      body: emptyBody,
      arrivedAtMs,
      deadlineAtMs: arrivedAtMs + deadlineMs[operation.lane],
      signal: new ClientDisconnect(outgoing),
      quota: undefined,
      waitedMs: undefined,
      recordEvent: undefined,
      identities: undefined,
      onClaim: undefined,
      activeEnvironment: undefined,
      permit: undefined,
      writeAheadMark: undefined,
      environment: undefined,
      bankIds: undefined,
      prefetched: undefined,
      onSent: undefined,
    };
  };

  const receiveBody = (
    request: PisRequest,
    incoming: IncomingMessage,
    head: RequestHead,
    outgoing: ServerResponse,
  ): PisRequest | Promise<PisRequest> => {
    if (head.announcesBody) {
      const { operation } = request;
      if (!mayHaveBody(operation))
        return awaitEmptyBody(request, incoming, () => unexpectedBody(operation, outgoing));
      const body = arrivedBody(incoming, maxBodyBytes);
      if (!body) return readBody(request, incoming, maxBodyBytes, memory);
      request.body = body;
      return request;
    }
    if (incoming.destroyed) return Promise.reject(incompleteRequest(incoming.errored));
    return request;
  };

  const allowBody = (incoming: IncomingMessage, head: RequestHead, outgoing: ServerResponse): void => {
    refuseOversizedBody(head.contentLength, maxBodyBytes);
    if (head.expect !== undefined && incoming.httpVersion === '1.1') outgoing.writeContinue();
  };

  /** Whether the quota must be known first: before `100 Continue` is sent, or an oversized body is refused. */
  const bodyWaitsForQuota = ({ contentLength, expect }: RequestHead) =>
    expect !== undefined || Number(contentLength ?? 0) > maxBodyBytes;

  return (incoming, head, outgoing, addField) => {
    const request = readHead(incoming, head, outgoing);
    const quota = checkQuota(request.client, addField);
    if (!quota) {
      allowBody(incoming, head, outgoing);
      return receiveBody(request, incoming, head, outgoing);
    }
    // The body is read during the check: otherwise the gateway would not notice that it breaks off.
    const received = receiveBody(request, incoming, head, outgoing);
    if (quota.isLikely && !bodyWaitsForQuota(head)) return withPendingQuota(request, received, quota);
    if (received instanceof Promise) received.catch(() => {}); // returned below, unless the quota is used up
    return quota.result.then(() => {
      allowBody(incoming, head, outgoing);
      return received;
    });
  };
}

/**
 * Returns a request whose quota is still being checked. An error of its body is reported only if the quota admits the request.
 *
 * @param received the request, once its body is complete
 */
function withPendingQuota(
  request: PisRequest,
  received: PisRequest | Promise<PisRequest>,
  { result }: PendingQuota,
): PisRequest | Promise<PisRequest> {
  result.catch(() => {}); // the stage that awaits it may start later
  request.quota = result;
  if (!(received instanceof Promise)) return received;
  return received.catch((thrown: unknown) =>
    result.then(() => {
      throw thrown;
    }),
  );
}

/**
 * Closes the connection after the response: if the end of a request is uncertain, the bytes that follow may belong to it, and
 * must not be parsed as the next request (RFC 9112 section 11.2).
 */
function closing(outgoing: ServerResponse, error: GatewayError): GatewayError {
  outgoing.shouldKeepAlive = false;
  return error;
}

function operationOf(match: Matcher, incoming: IncomingMessage): Operation {
  const found = match(incoming.method ?? '', incoming.url ?? '');
  switch (found.kind) {
    case 'operation':
      return found.operation;
    case 'malformed':
      throw new GatewayError('PATH_MALFORMED', `The request target is not valid: ${found.why}.`);
    case 'unknown-path':
      throw new GatewayError('PATH_UNKNOWN', 'No operation of the payment initiation service has this path.');
    case 'unknown-product':
      throw new GatewayError('PRODUCT_UNKNOWN', `Not available: ${found.why}.`);
    case 'wrong-method':
      throw methodNotAllowed(found.allow.join(', '), found.notOffered);
  }
}

function methodNotAllowed(allow: string, notOffered: OptionalOperation | undefined): GatewayError {
  const hint =
    notOffered && `; the operator can offer this method with the setting standard.alsoOffer: ${notOffered}`;
  const text = `This path supports only ${allow}${hint ?? ''}.`;
  return new GatewayError('METHOD_NOT_ALLOWED', text, { headers: [['Allow', allow]] });
}

function requestIdInvalid(): GatewayError {
  const text = 'X-Request-ID is missing, repeated or not a UUID; send a new UUID with each new request.';
  return new GatewayError('REQUEST_ID_INVALID', text, { field: 'X-Request-ID' });
}

function unexpectedBody({ method }: Operation, outgoing: ServerResponse): GatewayError {
  const text = `${method} does not allow a body; send the request without one.`;
  return closing(outgoing, new GatewayError('BODY_UNEXPECTED', text));
}

/** The environment that the TPP requests. It exists, and the client may use it. */
function requestedEnvironmentIn(
  { requestedEnvironment: name }: RequestHead,
  environments: readonly string[],
  client: Client,
): string | undefined {
  if (name === undefined || client.environments.includes(name)) return name;
  const field = 'Penstock-Environment';
  const text = `Penstock-Environment must be one of: ${client.environments.join(', ')}.`;
  throw new GatewayError(
    environments.includes(name) ? 'ENVIRONMENT_FORBIDDEN' : 'ENVIRONMENT_UNKNOWN',
    text,
    { field },
  );
}
