/** A payment whose status is polled, with the credentials of the TPP, and the request of one poll. */

import { randomUUID } from 'node:crypto';
import { type HeaderField, type HeaderFields, lowerCase } from '../pis/headers.ts';
import type { Operation } from '../pis/operations.ts';
import { emptyBody } from '../request/body-buffer.ts';
import type { Client, PisRequest, RoutedRequest } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { PaymentOfTenant } from '../request/statuses.ts';

/** Contains credentials: never log it. */
export interface PollTarget extends PaymentOfTenant {
  readonly client: Client;
  /** The status read of the payment. */
  readonly operation: Operation;
  /** The name of the environment. */
  readonly environment: string;
  /** Only the credentials and the PSU that they belong to, and `Accept`. */
  readonly headers: HeaderFields;
}

/**
 * Fields that the standard defines for a status read, without those that belong to one request: a poll has no address of a PSU
 * (`PSU-IP-*`), no session, and no signature of the TPP.
 */
const polledFields: ReadonlySet<string> = new Set([
  'authorization',
  'consent-id',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
]);

const acceptJson: HeaderField = ['Accept', 'application/json'];

/** @param request a status read that the bank has answered with 200 */
export function pollTargetOf(request: RoutedRequest, payment: PaymentOfTenant): PollTarget {
  const { client, operation, environment, headers } = request;
  return { ...payment, client, operation, environment: environment.name, headers: pollHeadersOf(headers) };
}

/** The fields of a poll, from those of a request on the same payment. */
export const pollHeadersOf = (headers: HeaderFields): HeaderFields => [
  ...headers.filter(([name]) => polledFields.has(lowerCase(name))),
  acceptJson,
];

/** Whether the bank takes the polls of both for those of the same caller. */
export const haveSameCredentials = (one: PollTarget, other: PollTarget): boolean =>
  one.client.name === other.client.name &&
  one.headers.length === other.headers.length &&
  one.headers.every(([name, value], at) => {
    const [otherName = '', otherValue] = other.headers[at] ?? [];
    return lowerCase(name) === lowerCase(otherName) && value === otherValue;
  });

/** Until stage 4 sets the deadline of the environment. Milliseconds. */
const firstDeadlineMs = 60_000;

/**
 * The request of one poll, with a new X-Request-ID.
 *
 * @param maxCachedAgeMs an older cached status does not answer it
 */
export function pollRequest(
  target: PollTarget,
  recordEvent: RecordEvent,
  maxCachedAgeMs: number | undefined,
): PisRequest {
  const { operation, client, environment, headers } = target;
  const arrivedAtMs = performance.now();
  const requestId = randomUUID();
  return {
    operation,
    client,
    requestId,
    requestedEnvironment: environment,
    headers: [...headers, ['X-Request-ID', requestId]],
    body: emptyBody,
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + firstDeadlineMs,
    recordEvent,
    maxCachedAgeMs,
  };
}
