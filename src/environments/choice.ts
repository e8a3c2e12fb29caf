/** The rules by which a request finds its side of the bank, apart from where the facts come from. */

import { GatewayError } from '../flow/errors.ts';
import type { PisRequest } from '../flow/messages.ts';
import type { EnvironmentReason } from '../flow/trail.ts';
import type { Home } from './payment-record.ts';

/** For a payment that does not exist yet: what is asked for, else the client's only environment, else the active one. */
export function forNewPayment({ namedEnvironment, client }: PisRequest, active: string | undefined): string {
  if (namedEnvironment !== undefined) return namedEnvironment; // the door has checked that it exists and is allowed
  const [only, ...more] = client.environments;
  if (only !== undefined && more.length === 0) return only;
  if (active === undefined) throw activeUnknown();
  return allowed(active, client.environments);
}

/** Why `forNewPayment` chose as it did. */
export function reasonFor({ namedEnvironment, client }: PisRequest): EnvironmentReason {
  if (namedEnvironment !== undefined) return 'named';
  return client.environments.length === 1 ? 'only-one-of-client' : 'active';
}

/**
 * For a payment that somebody remembers: where it lives. It is never guessed.
 *
 * @param homes every environment and tenant that its id was seen with; at least one
 */
export function forKnownPayment({ namedEnvironment, client }: PisRequest, homes: readonly Home[]): string {
  const own = homes.filter(({ tenant }) => tenant === client.tenant).map(({ environment }) => environment);
  const [first, ...more] = own;
  if (first === undefined) throw paymentUnknown();
  if (namedEnvironment !== undefined && !own.includes(namedEnvironment)) throw livesElsewhere();
  if (namedEnvironment === undefined && more.length > 0) throw livesInSeveral();
  return allowed(namedEnvironment ?? first, client.environments);
}

/** For a payment that nobody remembers, where only one tenant could own it. */
export function forForgottenPayment(request: PisRequest, active: string | undefined): string {
  if (request.namedEnvironment === undefined && request.operation.lane === 'write') throw forgotten();
  return forNewPayment(request, active);
}

/** Not known here, or another tenant's: the very same answer. */
export function paymentUnknown(): GatewayError {
  return new GatewayError('PAYMENT_UNKNOWN', 'No payment with this id is known here.');
}

function allowed(environment: string, environments: readonly string[]): string {
  if (environments.includes(environment)) return environment;
  throw new GatewayError(
    'ENVIRONMENT_FORBIDDEN',
    'This client may not use the environment that the request belongs to.',
  );
}

function livesElsewhere(): GatewayError {
  const text =
    'The payment does not live in the environment that Penstock-Environment names; leave the header out.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function livesInSeveral(): GatewayError {
  const text =
    'Payments with this id live in several environments; name the one you mean by Penstock-Environment.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function forgotten(): GatewayError {
  const text = 'It is not known where this payment lives; name its environment by Penstock-Environment.';
  return new GatewayError('ENVIRONMENT_MISMATCH', text, { field: 'Penstock-Environment' });
}

function activeUnknown(): GatewayError {
  const text = 'This instance does not know the environment that is active now; nothing was sent. Try again.';
  return new GatewayError('STATE_UNAVAILABLE', text);
}
