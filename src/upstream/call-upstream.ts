/** STAGE 6. Sends the request to its environment of the bank and waits for the answer until the deadline, or the fence's. */

import type { PisResponse, RoutedRequest } from '../flow/messages.ts';
import type { Handler } from '../flow/stage.ts';
import type { Transport } from './transport.ts';

/** @param transportTo the way to an environment, by its name */
export function callUpstream(transportTo: (environment: string) => Transport): Handler<RoutedRequest> {
  return async ({ operation, environment, headers, body, deadlineAtMs, fence }): Promise<PisResponse> => {
    const sentAtMs = performance.now();
    const answer = await transportTo(environment.name).send({
      method: operation.method,
      path: environment.basePath + operation.path,
      headers,
      body,
      deadlineAtMs,
      ...(fence && {
        fence: { pass: () => fence.pass(environment.name), listenUntilMs: fence.listenUntilMs },
      }),
    });
    return {
      ...answer,
      servedFrom: 'bank',
      environment: environment.name,
      upstreamMs: performance.now() - sentAtMs,
    };
  };
}
