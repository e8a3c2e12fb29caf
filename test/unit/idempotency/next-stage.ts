/** What stands behind the guard: the exchange at its fence, and a bank that the test answers for. */

import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';

export interface NextStage {
  readonly next: Handler<PisRequest>;
  /** How many requests have been sent. */
  sentCount(): number;
  readonly requests: readonly PisRequest[];
  respond(response: PisResponse): void;
  fail(error: unknown): void;
}

/** @param environment where everything goes */
export function createNextStage(environment = 'sandbox'): NextStage {
  const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
  promise.catch(() => {}); // perhaps nobody asks
  const requests: PisRequest[] = [];
  let sent = 0;
  return {
    async next(request) {
      requests.push(request);
      await request.writeAheadMark?.markSending(environment);
      sent++;
      return promise;
    },
    sentCount: () => sent,
    requests,
    respond: resolve,
    fail: reject,
  };
}
