/** STAGE 1. Gives a request its trail, and tells on its way back what became of it. */

import { asGatewayError, type GatewayError } from '../flow/errors.ts';
import type { PisRequest } from '../flow/messages.ts';
import type { Stage } from '../flow/stage.ts';
import type { Fact, Step } from '../flow/trail.ts';
import type { HeaderFields } from '../pis/headers.ts';
import { answered, type Decision, failed, type Observer, refused } from './decision.ts';
import type { Begun } from './traceparent.ts';

/** Says which trace a request belongs to, and what is sent on of it. */
export type BeginTrace = (fields: HeaderFields) => Begun;

/**
 * Tells of every request of the line, once, and of what becomes known of it later.
 *
 * @param begin if requests are traced; else what the TPP says of its own trace goes on as it is
 */
export function observe(observer: Required<Observer>, begin?: BeginTrace): Stage<PisRequest> {
  return async (request, next) => {
    const { arrivedAtMs } = request;
    const { trace, headers = request.headers } = begin?.(request.headers) ?? {};
    const steps: Step[] = [];
    let decision: Decision | undefined;
    const note = (fact: Fact) => {
      steps.push({ afterMs: performance.now() - arrivedAtMs, fact });
      if (decision) observer.later(fact, decision);
    };
    try {
      const response = await next({ ...request, headers, note });
      decision = answered(request, response, { steps, trace });
      return response;
    } catch (thrown) {
      const error = asGatewayError(thrown);
      decision = failed(request, error, { steps, trace });
      throw error;
    } finally {
      if (decision) observer.decided(decision);
    }
  };
}

/** Told of what was refused before it could become a request. @param arrivedAtMs milliseconds of `performance.now()` */
export type Refused = (
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
) => void;

/** Tells of what was refused before it could become a request. */
export const observeRefusal =
  (observer: Observer): Refused =>
  (...refusal) =>
    observer.decided(refused(...refusal));
