/** The requests that this instance is serving, and the records of requests that are not stored yet. In memory and bounded. */

import type { Lane } from '../pis/operations.ts';
import type { TimedEvent } from '../request/request-events.ts';
import type { RequestObserver, RequestRecord, RunningRequest } from './request-record.ts';

export interface UnstoredRequests extends Required<RequestObserver> {
  /** Those with this id, newest first. @param xRequestId in any letter case (likewise below) */
  running(xRequestId: string): readonly RunningRequest[];
  /** Records that wait to be stored, newest first. */
  waiting(xRequestId: string): readonly RequestRecord[];
  /** Removes the records that wait longest: payments first. */
  take(count: number): readonly RequestRecord[];
  /** For records that could not be stored. */
  putBack(records: readonly RequestRecord[]): void;
  /** How many records were removed since the last call because too many waited. */
  takeEvicted(): number;
  /** @param listener called when so many records wait; replaces the former listener */
  onBatch(records: number, listener: () => void): void;
}

/** `refused`: before the operation was known. */
export type RecordLane = Lane | 'refused';

const lanes: readonly RecordLane[] = ['write', 'read', 'status', 'refused'];

export const laneOf = ({ request }: RequestRecord): RecordLane => request?.lane ?? 'refused';

/** About 2 KB each. For each lane, so that no flood of polls or refusals removes payments. */
const maxWaiting = 2_000;

export function createUnstoredRequests(maxPerLane = maxWaiting): UnstoredRequests {
  /** By their events, which their records will have. */
  const running = new Map<readonly TimedEvent[], RunningRequest>();
  const waiting: Readonly<Record<RecordLane, Set<RequestRecord>>> = {
    write: new Set(),
    read: new Set(),
    status: new Set(),
    refused: new Set(),
  };
  let evicted = 0;
  let batch = { records: Number.POSITIVE_INFINITY, listener: () => {} };

  const countWaiting = () => lanes.reduce((sum, lane) => sum + waiting[lane].size, 0);

  function add(record: RequestRecord): void {
    const ofLane = waiting[laneOf(record)];
    ofLane.add(record);
    if (ofLane.size <= maxPerLane) return;
    const [oldest] = ofLane;
    if (oldest) ofLane.delete(oldest);
    evicted += 1;
  }

  return {
    onRequestStart(request) {
      running.set(request.events, request);
    },
    onRequestEnd(record) {
      running.delete(record.events);
      if (record.requestId === undefined) return; // it could never be found
      add(record);
      if (countWaiting() >= batch.records) batch.listener();
    },
    onLateEvent(_event, record) {
      if (record.requestId !== undefined) add(record);
    },
    running: (xRequestId) =>
      [...running.values()].filter(({ request }) => isSame(request.requestId, xRequestId)).toReversed(),
    waiting: (xRequestId) =>
      lanes
        .flatMap((lane) => [...waiting[lane]])
        .filter(({ requestId = '' }) => isSame(requestId, xRequestId))
        .toSorted((one, other) => other.number - one.number),
    take(count) {
      const taken: RequestRecord[] = [];
      for (const lane of lanes)
        for (const record of waiting[lane]) {
          if (taken.length === count) return taken;
          waiting[lane].delete(record);
          taken.push(record);
        }
      return taken;
    },
    putBack(records) {
      for (const record of records) add(record);
    },
    takeEvicted() {
      const count = evicted;
      evicted = 0;
      return count;
    },
    onBatch(records, listener) {
      batch = { records, listener };
    },
  };
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
