/** STAGE 1. Collects the events of a request, and passes the record of the finished request to the observers. */

import type { HeaderFields } from '../pis/headers.ts';
import { asGatewayError, type GatewayError, withEnvironment } from '../request/errors.ts';
import { type Identities, recordedTenantOf } from '../request/identities.ts';
import type { Client, PisRequest, PisResponse } from '../request/messages.ts';
import type { RecordEvent, TimedEvent } from '../request/request-events.ts';
import type { Handler, Stage } from '../request/stage.ts';
import {
  type RefusedClient,
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
  const finishedRequests = createFinishedRequests(observer);
  return (request, next) => {
    const started = startTrace?.(request.headers);
    if (started) request.headers = started.headers;
    const recorder = createEventRecorder(request.arrivedAtMs, finishedRequests);
    request.recordEvent = recorder.recordEvent;
    observer.onRequestStart({ request, events: recorder.events });
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

interface FinishedRequests {
  readonly observer: Required<RequestObserver>;
  add(record: RequestRecord): void;
  /** Passes the added records to the observer now. */
  flush(): void;
}

/** Passes the records of finished requests to the observer after the promises of this tick: the responses are sent first. */
function createFinishedRequests(observer: Required<RequestObserver>): FinishedRequests {
  let records: RequestRecord[] = [];

  function flush(): void {
    const added = records;
    records = [];
    for (const record of added) observer.onRequestEnd(record);
  }

  return {
    observer,
    add(record) {
      if (records.length === 0) process.nextTick(flush);
      records.push(record);
    },
    flush,
  };
}

interface EventRecorder {
  readonly events: readonly TimedEvent[];
  readonly recordEvent: RecordEvent;
  /** To be called with the record of the finished request. Later events are added to that record. */
  end(record: RequestRecord): void;
}

/** Does not refer to the request: a call that ends late keeps the recorder, but not the request with its body. */
function createEventRecorder(arrivedAtMs: number, finishedRequests: FinishedRequests): EventRecorder {
  const events: TimedEvent[] = [];
  let finished: RequestRecord | undefined;
  return {
    events,
    recordEvent(event) {
      if (finished) finishedRequests.flush(); // observers see the record without the late event first
      events.push({ afterMs: performance.now() - arrivedAtMs, event });
      if (finished) finishedRequests.observer.onLateEvent(event, finished);
    },
    end(record) {
      finished = record;
      finishedRequests.add(record);
    },
  };
}

/** Called for a request that is refused before it reaches the pipeline. @param arrivedAtMs milliseconds of `performance.now()` */
export type OnRefusal = (
  error: GatewayError,
  requestId?: string,
  arrivedAtMs?: number,
  network?: string,
  client?: Client,
) => void;

/** @param identities those of the configuration; `undefined` while they are not known */
export const observeRefusal =
  (observer: RequestObserver, identities: () => Identities | undefined = () => undefined): OnRefusal =>
  (error, requestId, arrivedAtMs, network, client) => {
    const refusedClient = client && refusedClientOf(client, identities());
    observer.onRequestEnd(recordOfRefusal(error, requestId, arrivedAtMs, network, refusedClient));
  };

const refusedClientOf = ({ name, tenant }: Client, identities: Identities | undefined): RefusedClient => ({
  name,
  tenant,
  tenantId: recordedTenantOf(tenant, identities),
});
