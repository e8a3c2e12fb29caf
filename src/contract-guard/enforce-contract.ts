/**
 * Refuses requests that lack a required header, and, where the contract is enforced, requests that the bank would refuse or
 * execute differently. Runs after the ledger and the choice of the environment: a repeated X-Request-ID gets its answer before any
 * rule is checked, and the refusal of a new one releases its claim (ADR 110).
 */

import type { Deviation } from '../contract/deviation.ts';
import { GatewayError } from '../request/errors.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import type { Handler, Stage } from '../request/stage.ts';
import type { ContractGuard } from './create-contract-guard.ts';
import type { GuardedEnvironment, GuardedEnvironments } from './guarded-environments.ts';

export interface EnforceContractDependencies {
  readonly guarded: GuardedEnvironments;
  readonly contractGuard: Pick<ContractGuard, 'checkNow' | 'addRequest'>;
}

/** @throws GatewayError CONTRACT_VIOLATED, HEADER_MALFORMED, or OVERLOADED if the check takes too long; nothing was sent */
export function enforceContract({
  guarded,
  contractGuard,
}: EnforceContractDependencies): Stage<RoutedRequest> {
  return (request, next) => {
    const environment = guarded.of(request.environment.name);
    if (!environment) return next(request);
    const missing = environment.missingHeader(request.operation.name, request.headers);
    if (missing !== undefined) return Promise.reject(missingHeaderError(request, missing));
    return environment.requests === 'enforce' ? enforce(environment, request, next) : next(request);
  };

  function enforce(
    environment: GuardedEnvironment,
    request: RoutedRequest,
    next: Handler<RoutedRequest>,
  ): Promise<PisResponse> {
    const decide = (deviations: readonly Deviation[] | undefined): Promise<PisResponse> => {
      if (!deviations) return Promise.reject(uncheckedError());
      if (environment.judges.length > 1) contractGuard.addRequest(environment, request, deviations);
      const harmful = deviations.filter(({ level }) => level === 'harmful');
      if (harmful.length === 0) return next(request);
      return Promise.reject(violationError(environment, harmful));
    };
    const checked = contractGuard.checkNow(request, environment);
    return checked instanceof Promise ? checked.then(decide) : decide(checked);
  }
}

/** How many deviations the message of an error lists, such as `body/instructedAmount/amount (pattern)`. */
const maxListed = 5;

function violationError(
  { standardVersion, own }: GuardedEnvironment,
  harmful: readonly Deviation[],
): GatewayError {
  const listed = harmful.slice(0, maxListed).map(({ path, rule }) => `${path} (${rule})`);
  const more = harmful.length > maxListed ? `, and ${harmful.length - maxListed} more` : '';
  const standard = `NextGenPSD2 ${standardVersion}${own.options.profile ? ', as this bank implements it' : ''}`;
  const text = `The request violates ${standard}: ${listed.join(', ')}${more}; nothing was sent.`;
  return new GatewayError('CONTRACT_VIOLATED', text, { field: harmful[0]?.path });
}

function missingHeaderError({ operation }: RoutedRequest, name: string): GatewayError {
  const text = `${name} is missing or empty: the bank requires it for ${operation.name}; nothing was sent.`;
  return new GatewayError('HEADER_MALFORMED', text, { field: name });
}

const uncheckedError = () =>
  new GatewayError(
    'OVERLOADED',
    'The request could not be checked against the standard; nothing was sent. Try again.',
  );
