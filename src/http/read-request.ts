/**
 * The door: makes a PisRequest of what came in, or refuses it.
 *
 * Refusals come in a fixed order: framing and path (400), shape (404), method (405), overload (503), client (401),
 * headers (400), environment (403), quota (429), body (413). Nothing that is refused here has been seen by the bank.
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
import { announcesBody, readBody, refuseTooLargeBody } from './read-body.ts';
import { requestIdOf } from './request-id.ts';
import { validateHead } from './validate-head.ts';

interface RequestReaderSettings {
  readonly match: Matcher;
  /** Refuses what is too much at the moment. @throws GatewayError OVERLOADED */
  readonly admit: (lane: Lane) => void;
  readonly authenticate: AuthenticateClient;
  readonly checkQuota: CheckQuota;
  /** Names of all that are configured. */
  readonly environments: readonly string[];
  readonly maxBodyBytes: number;
  /** For the whole call, from its arrival, in milliseconds. */
  readonly deadlineMs: Readonly<Record<Lane, number>>;
}

/**
 * @param say puts a field into the answer to come, whatever that is
 * @throws GatewayError with any code that the bank cannot have seen
 */
export type ReadRequest = (
  incoming: IncomingMessage,
  fields: HeaderFields,
  answer: ServerResponse,
  say: (field: HeaderField) => void,
) => Promise<PisRequest>;

/** Of all bodies that are on their way together; what a process has beside its heap. */
const maxUnfinishedBytes = 256 * 1024 * 1024;

/** Reads requests by one installation's rules. */
export function createRequestReader(settings: RequestReaderSettings): ReadRequest {
  const { match, admit, authenticate, checkQuota, environments, maxBodyBytes, deadlineMs } = settings;
  const room = createBodyMemoryBudget(maxUnfinishedBytes);
  return async (incoming, fields, answer, say) => {
    const arrivedAtMs = performance.now();
    const signal = clientDisconnectSignal(answer);
    orEndConnection(answer, () => validateHead(fields, incoming.httpVersion));
    const operation = operationOf(match, incoming);
    admit(operation.lane);
    const client = authenticate(incoming, fields);
    const requestId = requestIdOf(fields);
    orEndConnection(answer, () => refuseUnexpectedBody(operation, incoming));
    const namedEnvironment = namedIn(fields, environments, client);
    // Begun before the quota is asked: what breaks the body off meanwhile must be heard.
    const body = readBody(incoming, maxBodyBytes, room);
    body.catch(() => {}); // thrown below, unless something else is wrong first
    await checkQuota(client, say);
    refuseTooLargeBody(incoming, maxBodyBytes);

    if (incoming.headers.expect !== undefined && incoming.httpVersion === '1.1') answer.writeContinue();
    return {
      operation,
      client,
      requestId,
      ...(namedEnvironment !== undefined && { requestedEnvironment: namedEnvironment }),
      headers: outboundHeaders(fields),
      body: await body,
      arrivedAtMs,
      deadlineAtMs: arrivedAtMs + deadlineMs[operation.lane],
      signal,
    };
  };
}

/**
 * Where it is in doubt where a request ends, what follows on the connection may be part of it, and is never
 * taken for the next one (RFC 9112 section 11.2).
 */
function orEndConnection(answer: ServerResponse, check: () => void): void {
  try {
    check();
  } catch (doubt) {
    answer.shouldKeepAlive = false;
    throw doubt;
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
      throw wrongMethod(found.allow.join(', '));
  }
}

function wrongMethod(allow: string): GatewayError {
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

/** The environment that the TPP asks for, known to exist and to be open to the client. */
function namedIn(fields: HeaderFields, environments: readonly string[], client: Client): string | undefined {
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
