/** STAGE 1. Collects the events of a request, and passes the record of the finished request to the observers. */

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

/** Continues the caller's trace or starts one. */
export type StartTrace = (headers: HeaderFields) => StartedTrace;

/** @param startTrace `undefined` if tracing is off: the caller's `traceparent` then reaches the bank unchanged */
export function observe(observer: Required<RequestObserver>, startTrace?: StartTrace): Stage<PisRequest> {
  return async (request, next) => {
    const { arrivedAtMs } = request;
    const { trace, headers = request.headers } = startTrace?.(request.headers) ?? {};
    const events: TimedEvent[] = [];
    let record: RequestRecord | undefined;
    const recordEvent = (event: RequestEvent) => {
      events.push({ afterMs: performance.now() - arrivedAtMs, event });
      if (record) observer.onLateEvent(event, record);
    };
    try {
      const response = await next({ ...request, headers, recordEvent });
      record = recordOfResponse(request, response, { events, trace });
      return response;
    } catch (thrown) {
      const error = asGatewayError(thrown);
      record = recordOfFailure(request, error, { events, trace });
      throw error;
    } finally {
      if (record) observer.onRequestEnd(record);
    }
  };
}

/** Called for a request that is refused before it reaches the pipeline. @param arrivedAtMs milliseconds of `performance.now()` */
export type OnRefusal = (
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
) => void;

export const observeRefusal =
  (observer: RequestObserver): OnRefusal =>
  (...refusal) =>
    observer.onRequestEnd(recordOfRefusal(...refusal));
