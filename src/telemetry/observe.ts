/** STAGE 1. Collects the events of a request, and passes the record of the finished request to the observers. */

import type { HeaderFields } from '../pis/headers.ts';
import { asGatewayError, type GatewayError, withEnvironment } from '../request/errors.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import type { RecordEvent, TimedEvent } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
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
  return (request, next) => {
    const started = startTrace?.(request.headers);
    if (started) request.headers = started.headers;
    const recorder = createEventRecorder(request.arrivedAtMs, observer);
    request.recordEvent = recorder.recordEvent;
    const collected = { events: recorder.events, trace: started?.trace };
    return rejecting(next, request).then(
      (response) => {
        recorder.end(recordOfResponse(request, response, collected));
        return response;
      },
      (thrown: unknown) => {
        const error = withEnvironment(asGatewayError(thrown), request.environment?.name);
        recorder.end(recordOfFailure(request, error, collected));
        throw error;
      },
    );
  };
}

/** A stage that throws where it should reject is a bug: its request needs a record and a response all the same. */
function rejecting(next: Handler<PisRequest>, request: PisRequest): Promise<PisResponse> {
  try {
    return next(request);
  } catch (thrown) {
    return Promise.reject(thrown);
  }
}

interface EventRecorder {
  readonly events: readonly TimedEvent[];
  readonly recordEvent: RecordEvent;
  /** Passes the record of the finished request to the observer. Later events are added to that record. */
  end(record: RequestRecord): void;
}

/** Does not refer to the request: a call that ends late keeps the recorder, but not the request with its body. */
function createEventRecorder(arrivedAtMs: number, observer: Required<RequestObserver>): EventRecorder {
  const events: TimedEvent[] = [];
  let finished: RequestRecord | undefined;
  return {
    events,
    recordEvent(event) {
      events.push({ afterMs: performance.now() - arrivedAtMs, event });
      if (finished) observer.onLateEvent(event, finished);
    },
    end(record) {
      finished = record;
      observer.onRequestEnd(record);
    },
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
