/**
 * Queues messages for the contract guard: each request after it was sent to the bank, and a sample of the responses. Changes and
 * delays no message (ADR 110).
 */

import type { RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import type { ContractGuard } from './create-contract-guard.ts';
import type { GuardedEnvironments } from './guarded-environments.ts';

export interface ReportContractDependencies {
  readonly guarded: GuardedEnvironments;
  readonly contractGuard: Pick<ContractGuard, 'addRequest' | 'addResponse' | 'skipResponse'>;
}

/** @param checked `responses` for requests of the gateway itself */
export function reportContract(
  { guarded, contractGuard }: ReportContractDependencies,
  checked: 'all' | 'responses' = 'all',
): Stage<RoutedRequest> {
  return (request, next) => {
    const environment = guarded.of(request.environment.name);
    if (!environment) return next(request);
    const response = next(request);
    // `tppHeaders` is missing if the gateway repeats the read of a TPP that waits.
    const isOfTpp = checked === 'all' && request.tppHeaders !== undefined;
    if (environment.requests === 'report' && isOfTpp) contractGuard.addRequest(environment, request);
    if (environment.responses === 'off') return response;
    if (!environment.isSampled(request.operation.name, request.arrivedAtMs)) {
      contractGuard.skipResponse(environment);
      return response;
    }
    return response.then((answer) => {
      contractGuard.addResponse(environment, request, answer);
      return answer;
    });
  };
}
