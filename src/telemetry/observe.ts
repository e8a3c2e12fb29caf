/** STAGE 1. Gives a request its trail, and tells on its way back what became of it. */

import type { HeaderFields } from '../pis/headers.ts';
import { asGatewayError, type GatewayError } from '../request/errors.ts';
import type { PisRequest } from '../request/messages.ts';
import type { RequestEvent, TimedEvent } from '../request/request-events.ts';
import type { Stage } from '../request/stage.ts';
import {
  type RequestObserver,
  type RequestRecord,
  recordOfFailure,
  recordOfRefusal,
  recordOfResponse,
} from './request-record.ts';
import type { StartedTrace } from './traceparent.ts';

/** Says which trace a request belongs to, and what is sent on of it. */
export type StartTrace = (fields: HeaderFields) => StartedTrace;

/**
 * Tells of every request of the line, once, and of what becomes known of it later.
 *
 * @param startTrace if requests are traced; else what the TPP says of its own trace goes on as it is
 */
export function observe(observer: Required<RequestObserver>, startTrace?: StartTrace): Stage<PisRequest> {
  return async (request, next) => {
    const { arrivedAtMs } = request;
    const { trace, headers = request.headers } = startTrace?.(request.headers) ?? {};
    const steps: TimedEvent[] = [];
    let record: RequestRecord | undefined;
    const recordEvent = (event: RequestEvent) => {
      steps.push({ afterMs: performance.now() - arrivedAtMs, event });
      if (record) observer.onLateEvent(event, record);
    };
    try {
      const response = await next({ ...request, headers, recordEvent });
      record = recordOfResponse(request, response, { steps, trace });
      return response;
    } catch (thrown) {
      const error = asGatewayError(thrown);
      record = recordOfFailure(request, error, { steps, trace });
      throw error;
    } finally {
      if (record) observer.onRequestEnd(record);
    }
  };
}

/** Told of what was refused before it could become a request. @param arrivedAtMs milliseconds of `performance.now()` */
export type OnRefusal = (
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
) => void;

/** Tells of what was refused before it could become a request. */
export const observeRefusal =
  (observer: RequestObserver): OnRefusal =>
  (...refusal) =>
    observer.onRequestEnd(recordOfRefusal(...refusal));
