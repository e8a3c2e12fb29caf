/** The rules that choose an environment for a request, as pure functions. */

import { GatewayError } from '../request/errors.ts';
import { identitiesOf } from '../request/identities.ts';
import type { PisRequest } from '../request/messages.ts';
import type { EnvironmentReason } from '../request/request-events.ts';
import type { PaymentAffinity } from './affinity.ts';

/** For a new payment: the requested environment, else the client's only one, else the active one. */
export function routeNewPayment(request: PisRequest, active: string | undefined): string {
  const environment = requestedOrActive(request, active);
  if (environment === undefined) throw activeEnvironmentUnknownError();
  return requireAllowed(environment, request.client.environments);
}

/** Like `routeNewPayment`, without its checks. @returns `undefined` if the active environment is unknown */
export function requestedOrActive(
  { requestedEnvironment, client }: PisRequest,
  active: string | undefined,
): string | undefined {
  if (requestedEnvironment !== undefined) return requestedEnvironment;
  return client.onlyEnvironment ?? active;
}

/** Why `routeNewPayment` chooses its environment. */
export function routingReason({ requestedEnvironment, client }: PisRequest): EnvironmentReason {
  if (requestedEnvironment !== undefined) return 'named';
  return client.onlyEnvironment === undefined ? 'active' : 'only-one-of-client';
}

/**
 * For a payment with recorded affinities: the environment that created it. Never a guess.
 *
 * @param affinities all affinities of the payment id, at least one
 */
export function routeKnownPayment(request: PisRequest, affinities: readonly PaymentAffinity[]): string {
  const { requestedEnvironment, client } = request;
  const identities = identitiesOf(request);
  const tenantId = identities.tenantIdOf(client.tenant);
  /** `undefined` for an environment that was removed. */
  const homes = affinities
    .filter(({ tenant }) => tenant === tenantId)
    .map(({ environment }) => identities.environmentWith(environment));
  if (homes.length === 0) throw paymentUnknownError();
  const wanted = homes.filter((name) => [name, undefined].includes(requestedEnvironment));
  if (wanted.length === 0) throw otherEnvironmentError();
  if (wanted.length > 1) throw ambiguousEnvironmentError();
  const [name] = wanted;
  if (name === undefined) throw notConfiguredError();
  return requireAllowed(name, client.environments);
}

/** For a payment without a record, in a gateway with a single tenant. Writes are never sent on a guess. */
export function routeUnknownPayment(request: PisRequest, active: string | undefined): string {
  if (request.requestedEnvironment === undefined && request.operation.lane === 'write')
    throw environmentNotRecordedError();
  return routeNewPayment(request, active);
}

/** The same error for a payment or an authorisation without a record, and for one of another tenant. */
export function paymentUnknownError(): GatewayError {
  const text =
    'The gateway has no payment or authorisation with this id; check the id, ' +
    'and use the API key or certificate of the tenant that initiated the payment.';
  return new GatewayError('PAYMENT_UNKNOWN', text);
}

function requireAllowed(environment: string, environments: readonly string[]): string {
  if (environments.includes(environment)) return environment;
  throw new GatewayError(
    'ENVIRONMENT_FORBIDDEN',
    'This client is not allowed to use the environment of this request.',
  );
}

/** The environment of the request is not configured on this instance. */
export function notConfiguredError(): GatewayError {
  const text =
    'The environment of this request is not configured on this instance; contact the operators of the gateway.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}

function otherEnvironmentError(): GatewayError {
  const text =
    'This payment belongs to another environment than Penstock-Environment names; omit the header.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function ambiguousEnvironmentError(): GatewayError {
  const text =
    'Payments with this id exist in several environments; select one with the header Penstock-Environment.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function environmentNotRecordedError(): GatewayError {
  const text = 'The environment of this payment is unknown; name it in the header Penstock-Environment.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function activeEnvironmentUnknownError(): GatewayError {
  const text = 'The active environment is unknown to this instance; nothing was sent. Try again.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}
