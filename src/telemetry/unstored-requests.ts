/** The requests that this instance is serving, and the records of requests that are not stored yet. In memory and bounded. */

import type { Lane } from '../pis/operations.ts';
import type { TimedEvent } from '../request/request-events.ts';
import {
  type RequestObserver,
  type RequestRecord,
  type RunningRequest,
  tenantIdOf,
} from './request-record.ts';

export interface UnstoredRequests extends Required<RequestObserver> {
  /** Those with this id, newest first. @param xRequestId in any letter case (likewise below) */
  running(xRequestId: string): readonly RunningRequest[];
  /** Records that wait to be stored, newest first. */
  waiting(xRequestId: string): readonly RequestRecord[];
  /** Removes records: writes, then reads, polls and refusals, each in their order. @param upTo the greatest `number` to remove */
  take(count: number, upTo?: number): readonly RequestRecord[];
  /** The greatest `number` of a record so far. */
  newest(): number;
  /** For records that could not be stored. */
  putBack(records: readonly RequestRecord[]): void;
  /** By tenant, how many records were removed since the last call because too many waited. */
  takeEvicted(): ReadonlyMap<string, number>;
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
  const waiting: Record<RecordLane, Set<RequestRecord>> = {
    write: new Set(),
    read: new Set(),
    status: new Set(),
    refused: new Set(),
  };
  let evicted = new Map<string, number>();
  let newest = 0;
  let batch = { records: Number.POSITIVE_INFINITY, listener: () => {} };

  const countWaiting = () => lanes.reduce((sum, lane) => sum + waiting[lane].size, 0);

  function add(record: RequestRecord): void {
    waiting[laneOf(record)].add(record);
    newest = Math.max(newest, record.number);
    evict(laneOf(record));
  }

  /** Removes the oldest records beyond the limit. */
  function evict(lane: RecordLane): void {
    for (const oldest of waiting[lane]) {
      if (waiting[lane].size <= maxPerLane) return;
      waiting[lane].delete(oldest);
      const tenant = tenantIdOf(oldest);
      evicted.set(tenant, (evicted.get(tenant) ?? 0) + 1);
    }
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
    newest: () => newest,
    take(count, upTo = Number.POSITIVE_INFINITY) {
      const taken: RequestRecord[] = [];
      for (const lane of lanes)
        for (const record of waiting[lane]) {
          if (taken.length === count) return taken;
          if (record.number > upTo) continue;
          waiting[lane].delete(record);
          taken.push(record);
        }
      return taken;
    },
    putBack(records) {
      for (const lane of lanes) {
        const older = records.filter((record) => laneOf(record) === lane);
        waiting[lane] = new Set([...older, ...waiting[lane]]);
        evict(lane);
      }
    },
    takeEvicted() {
      const counts = evicted;
      evicted = new Map();
      return counts;
    },
    onBatch(records, listener) {
      batch = { records, listener };
    },
  };
}

const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
