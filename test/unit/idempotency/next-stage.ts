/** The stages behind the idempotency stage: mark the request as sending, report its deadline, and return what the test decides. */

import { GatewayError } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { Handler } from '../../../src/request/stage.ts';

export interface NextStage {
  readonly next: Handler<PisRequest>;
  /** Resolves when the bank has received a request. */
  readonly received: Promise<void>;
  /** How many requests were sent to the bank. */
  sentCount(): number;
  readonly requests: readonly PisRequest[];
  /** Completes all requests, earlier and later ones. */
  respond(response: PisResponse): void;
  fail(error: unknown): void;
}

/** @param environment that the requests are sent to */
export function createNextStage(environment = 'sandbox'): NextStage {
  const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
  const received = Promise.withResolvers<void>();
  promise.catch(() => {}); // there may be no request
  const requests: PisRequest[] = [];
  let sent = 0;
  return {
    async next(request) {
      requests.push(request);
      const { writeAheadMark, deadlineAtMs } = request;
      await writeAheadMark?.markSending(environment);
      sent++;
      received.resolve();
      const deadline = setTimeout(() => writeAheadMark?.onDeadline(), deadlineAtMs - performance.now());
      const response = await promise.finally(() => clearTimeout(deadline));
      namePayment(request, response);
      return response;
    },
    received: received.promise,
    sentCount: () => sent,
    requests,
    respond: resolve,
    fail: reject,
  };
}

/** As the gateway does when the bank's response to an initiation names a payment. */
function namePayment({ writeAheadMark, operation }: PisRequest, { meaning }: PisResponse): void {
  if (meaning?.paymentId === undefined) return;
  const { paymentService, paymentProduct } = operation;
  writeAheadMark?.namePayment({
    created: {
      paymentId: meaning.paymentId,
      initiatedAs: `${paymentService}/${paymentProduct}`,
      bankIds: undefined,
      isPermanent: false,
    },
    withheld: () => new GatewayError('OUTCOME_UNKNOWN', 'withheld'),
  });
}
