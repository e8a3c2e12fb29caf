/** The stages behind the idempotency stage: mark the request as sending, report its deadline, and return what the test decides. */

import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';

export interface NextStage {
  readonly next: Handler<PisRequest>;
  /** How many requests were sent to the bank. */
  sentCount(): number;
  readonly requests: readonly PisRequest[];
  /** Completes all requests, earlier and later ones. */
  respond(response: PisResponse): void;
  fail(error: unknown): void;
}

export function createNextStage(): NextStage {
  const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
  promise.catch(() => {}); // there may be no request
  const requests: PisRequest[] = [];
  let sent = 0;
  return {
    async next(request) {
      requests.push(request);
      const { writeAheadMark, deadlineAtMs } = request;
      await writeAheadMark?.markSending('sandbox');
      sent++;
      const deadline = setTimeout(() => writeAheadMark?.onDeadline(), deadlineAtMs - performance.now());
      return promise.finally(() => clearTimeout(deadline));
    },
    sentCount: () => sent,
    requests,
    respond: resolve,
    fail: reject,
  };
}
