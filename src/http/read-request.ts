/**
 * Reads a request of the public API, or refuses it.
 *
 * Refusals come in a fixed order: framing and path (400), shape (404), method (405), overload (503), client (401),
 * headers (400), environment (403), quota (429), body (413). The bank has received nothing of a request that is refused here.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HeaderField, type HeaderFields, headerValue } from '../pis/headers.ts';
import type { Lane, Matcher, Operation } from '../pis/operations.ts';
import { GatewayError } from '../request/errors.ts';
import type { Client, PisRequest } from '../request/messages.ts';
import type { AuthenticateClient } from './authenticate-client.ts';
import { createBodyMemoryBudget } from './body-memory-budget.ts';
import { clientDisconnectSignal } from './client-disconnect.ts';
import { outboundHeaders } from './outbound-headers.ts';
import type { CheckQuota } from './quota.ts';
import { announcesBody, readBody, refuseOversizedBody } from './read-body.ts';
import { requestIdOf } from './request-id.ts';
import { validateHead } from './validate-head.ts';

interface RequestReaderSettings {
  readonly match: Matcher;
  /** @throws GatewayError OVERLOADED while requests of this lane are shed */
  readonly admit: (lane: Lane) => void;
  readonly authenticate: AuthenticateClient;
  readonly checkQuota: CheckQuota;
  /** Names of all configured environments. */
  readonly environments: readonly string[];
  readonly maxBodyBytes: number;
  /** From the arrival of the request, in milliseconds. */
  readonly deadlineMs: Readonly<Record<Lane, number>>;
}

/**
 * @param addField adds a field to the response, whatever that will be
 * @throws GatewayError with a code whose request the bank cannot have received
 */
export type ReadRequest = (
  incoming: IncomingMessage,
  fields: HeaderFields,
  outgoing: ServerResponse,
  addField: (field: HeaderField) => void,
) => Promise<PisRequest>;

/** Of all request bodies that are being received. Buffers are not part of V8's heap. */
const maxBodyMemoryBytes = 256 * 1024 * 1024;

export function createRequestReader(settings: RequestReaderSettings): ReadRequest {
  const { match, admit, authenticate, checkQuota, environments, maxBodyBytes, deadlineMs } = settings;
  const memory = createBodyMemoryBudget(maxBodyMemoryBytes);
  return async (incoming, fields, outgoing, addField) => {
    const arrivedAtMs = performance.now();
    const signal = clientDisconnectSignal(outgoing);
    closingOnError(outgoing, () => validateHead(fields, incoming.httpVersion));
    const operation = operationOf(match, incoming);
    admit(operation.lane);
    const client = authenticate(incoming, fields);
    const requestId = requestIdOf(fields);
    closingOnError(outgoing, () => refuseUnexpectedBody(operation, incoming));
    const requestedEnvironment = requestedEnvironmentIn(fields, environments, client);
    // Before the quota check: a body that breaks off during the check must not go unnoticed.
    const body = readBody(incoming, maxBodyBytes, memory);
    body.catch(() => {}); // awaited below, unless another error comes first
    await checkQuota(client, addField);
    refuseOversizedBody(incoming, maxBodyBytes);

    if (incoming.headers.expect !== undefined && incoming.httpVersion === '1.1') outgoing.writeContinue();
    return {
      operation,
      client,
      requestId,
      ...(requestedEnvironment !== undefined && { requestedEnvironment }),
      headers: outboundHeaders(fields),
      body: await body,
      arrivedAtMs,
      deadlineAtMs: arrivedAtMs + deadlineMs[operation.lane],
      signal,
    };
  };
}

/**
 * Closes the connection behind the response if the check fails: where the end of a request is not certain, what follows
 * may be a part of it, and is never parsed as the next request (RFC 9112 section 11.2).
 */
function closingOnError(outgoing: ServerResponse, check: () => void): void {
  try {
    check();
  } catch (error) {
    outgoing.shouldKeepAlive = false;
    throw error;
  }
}

function operationOf(match: Matcher, incoming: IncomingMessage): Operation {
  const found = match(incoming.method ?? '', incoming.url ?? '');
  switch (found.kind) {
    case 'operation':
      return found.operation;
    case 'malformed':
      throw new GatewayError('PATH_MALFORMED', `The request target is not accepted: ${found.why}.`);
    case 'unknown-path':
      throw new GatewayError('PATH_UNKNOWN', 'No operation of the payment initiation service has this path.');
    case 'unknown-product':
      throw new GatewayError('PRODUCT_UNKNOWN', `Not available: ${found.why}.`);
    case 'wrong-method':
      throw methodNotAllowed(found.allow.join(', '));
  }
}

function methodNotAllowed(allow: string): GatewayError {
  const text = `This path is offered for ${allow} only; embedded SCA (PUT on an authorisation) is not part of this gateway.`;
  return new GatewayError('METHOD_NOT_ALLOWED', text, { headers: [['Allow', allow]] });
}

function refuseUnexpectedBody(operation: Operation, incoming: IncomingMessage): void {
  if (operation.method === 'POST' || !announcesBody(incoming)) return;
  throw new GatewayError(
    'BODY_UNEXPECTED',
    `A ${operation.method} carries no body here; send it without one.`,
  );
}

/** The environment that the TPP requests. It exists, and the client may use it. */
function requestedEnvironmentIn(
  fields: HeaderFields,
  environments: readonly string[],
  client: Client,
): string | undefined {
  const name = headerValue(fields, 'penstock-environment');
  if (name === undefined || client.environments.includes(name)) return name;
  const field = 'Penstock-Environment';
  const text = `Penstock-Environment must be one of: ${client.environments.join(', ')}.`;
  throw new GatewayError(
    environments.includes(name) ? 'ENVIRONMENT_FORBIDDEN' : 'ENVIRONMENT_UNKNOWN',
    text,
    { field },
  );
}
