/** What stands behind the guard: the exchange at its fence, and a bank that the test answers for. */

import type { PisRequest, PisResponse } from '../../../src/flow/messages.ts';
import type { Handler } from '../../../src/flow/stage.ts';

export interface Behind {
  readonly next: Handler<PisRequest>;
  /** How many requests have been sent. */
  sent(): number;
  readonly requests: readonly PisRequest[];
  answer(response: PisResponse): void;
  fail(error: unknown): void;
}

/** @param environment where everything goes */
export function createBehind(environment = 'sandbox'): Behind {
  const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
  promise.catch(() => {}); // perhaps nobody asks
  const requests: PisRequest[] = [];
  let sent = 0;
  return {
    async next(request) {
      requests.push(request);
      await request.fence?.pass(environment);
      sent++;
      return promise;
    },
    sent: () => sent,
    requests,
    answer: resolve,
    fail: reject,
  };
}
