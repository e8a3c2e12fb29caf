/** A payment whose status is polled, with the credentials of the TPP, and the request of one poll. */

import { randomUUID } from 'node:crypto';
import { type HeaderField, type HeaderFields, lowerCase } from '../pis/headers.ts';
import type { Operation } from '../pis/operations.ts';
import { emptyBody } from '../request/body-buffer.ts';
import type { Client, Environment, PisRequest, RoutedRequest } from '../request/messages.ts';
import type { RecordEvent } from '../request/request-events.ts';
import type { PaymentOfTenant } from '../request/statuses.ts';

/** Contains credentials: never log it. */
export interface PollTarget extends PaymentOfTenant {
  readonly client: Client;
  /** The status read of the payment. */
  readonly operation: Operation;
  /** The name of the environment. */
  readonly environment: string;
  /** Only the credentials, the PSU that they belong to, what the environment's settings name, and `Accept`. */
  readonly headers: HeaderFields;
}

/**
 * Fields that the standard defines for a status read, without those that belong to one request: unless the settings say otherwise, a
 * poll has no address of a PSU (`PSU-IP-*`). It has no session, and no signature of the TPP.
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
  return {
    ...payment,
    client,
    operation,
    environment: environment.name,
    headers: pollHeadersOf(headers, environment),
  };
}

/** The settings that say which fields of the TPP the reads of the gateway need. */
export type PollFieldSettings = Pick<Environment, 'callerHeaders' | 'pollHeaders'>;

/** The fields of a poll, from those of a request on the same payment. Each message has its own `Date`. */
export const pollHeadersOf = (headers: HeaderFields, settings: PollFieldSettings): HeaderFields => [
  ...headers.filter(([field]) => {
    const name = lowerCase(field);
    return polledFields.has(name) || isKeptField(name, settings);
  }),
  acceptJson,
];

const isKeptField = (name: string, { callerHeaders, pollHeaders }: PollFieldSettings): boolean =>
  name !== 'accept' && name !== 'date' && (callerHeaders.includes(name) || pollHeaders.includes(name));

/** Whether stored fields must be encrypted: they authorise, or the settings name them. */
export const needEncryption = (headers: HeaderFields, settings: PollFieldSettings): boolean =>
  headers.some(([field]) => {
    const name = lowerCase(field);
    return name === 'authorization' || isKeptField(name, settings);
  });

/** The fields of one message of the gateway itself. */
export const messageFields = (requestId: string): HeaderFields => [
  ['X-Request-ID', requestId],
  ['Date', new Date().toUTCString()],
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
    headers: [...headers, ...messageFields(requestId)],
    body: emptyBody,
    arrivedAtMs,
    deadlineAtMs: arrivedAtMs + firstDeadlineMs,
    recordEvent,
    maxCachedAgeMs,
  };
}
