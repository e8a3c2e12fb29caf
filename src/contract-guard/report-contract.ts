/**
 * Queues messages for the contract guard: the request when it is on its way to the bank, and a sample of the answers. Changes and
 * delays nothing (ADR 110).
 */

import type { RoutedRequest } from '../request/messages.ts';
import type { Stage } from '../request/stage.ts';
import type { ContractGuard } from './create-contract-guard.ts';
import type { GuardedEnvironments } from './guarded-environments.ts';

export interface ReportContractDependencies {
  readonly guarded: GuardedEnvironments;
  readonly contractGuard: Pick<ContractGuard, 'addRequest' | 'addResponse' | 'skipAnswer'>;
}

/** @param checked `answers`: only these, because no TPP has sent the request */
export function reportContract(
  { guarded, contractGuard }: ReportContractDependencies,
  checked: 'messages' | 'answers' = 'messages',
): Stage<RoutedRequest> {
  return (request, next) => {
    const environment = guarded.of(request.environment.name);
    if (!environment) return next(request);
    const response = next(request);
    const isOfTpp = checked === 'messages' && request.tppHeaders !== undefined; // not a later read of one that waits
    if (environment.requests === 'report' && isOfTpp) contractGuard.addRequest(environment, request);
    if (environment.responses === 'off') return response;
    if (!environment.isSampled(request.operation.name, request.arrivedAtMs)) {
      contractGuard.skipAnswer(environment);
      return response;
    }
    return response.then((answer) => {
      contractGuard.addResponse(environment, request, answer);
      return answer;
    });
  };
}
