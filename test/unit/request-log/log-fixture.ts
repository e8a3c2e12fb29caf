/** Instances that write to and search in one request log in memory, on a manual clock. */

import { randomUUID } from 'node:crypto';
import { createRequestSearch } from '../../../src/request-log/find-requests.ts';
import { createRequestHistory } from '../../../src/request-log/request-history.ts';
import { createRequestLogWriter, type RecordSettings } from '../../../src/request-log/request-log-writer.ts';
import { createMemoryRequestLog } from '../../../src/state/memory-request-log.ts';
import type { LogWrite, RequestLog } from '../../../src/state/ports.ts';
import { createLiveStats } from '../../../src/telemetry/live-stats.ts';
import { createRecentRequests } from '../../../src/telemetry/recent-requests.ts';
import type { RequestRecord } from '../../../src/telemetry/request-record.ts';
import type { RequestQuery } from '../../../src/telemetry/request-search.ts';
import { requestRecord } from '../../kit/request-records.ts';

/** The beginning of a slice. */
export const startMs = Date.UTC(2026, 0, 31, 12);

export type LogInstance = ReturnType<ReturnType<typeof createLog>['instance']>;

export function createLog(settings: Partial<RecordSettings> = {}) {
  let nowMs = startMs;
  const now = () => nowMs;
  const recordSettings = {
    keepFor: 24 * 3_600_000,
    maxStoredPerTenant: 256 * 1024 ** 2,
    selfService: true,
    ...settings,
  };
  let stored = createMemoryRequestLog(now);
  const writes: LogWrite[] = [];
  let fails: 'never' | 'before the write' | 'after the write' = 'never';
  const log: RequestLog = {
    readChunks: (...args) => stored.readChunks(...args),
    readIndex: (...args) => stored.readIndex(...args),
    readValues: (...args) => stored.readValues(...args),
    readCounters: (...args) => stored.readCounters(...args),
    async append(slice, write) {
      if (fails === 'before the write') throw new Error('unavailable');
      writes.push(write);
      const counters = await stored.append(slice, write);
      if (fails === 'after the write') throw new Error('no answer');
      return counters;
    },
  };

  return {
    log,
    /** All writes that reached the log. */
    writes,
    now,
    advance(ms: number) {
      nowMs += ms;
    },
    fail(when: typeof fails) {
      fails = when;
    },
    /** As a Redis that restarts without its data. */
    loseEverything() {
      stored = createMemoryRequestLog(now);
    },
    /** @param aheadMs how far its clock is ahead */
    instance(name: string, tenants = 2, aheadMs = 0) {
      const ownNow = () => nowMs + aheadMs;
      const recentRequests = createRecentRequests();
      const liveStats = createLiveStats(ownNow);
      let notStored = 0;
      const source = { requestLog: log, recentRequests, instance: name, now: ownNow };
      const writer = createRequestLogWriter({
        ...source,
        liveStats,
        settings: () => recordSettings,
        tenants: () => tenants,
        countNotStored: (records) => {
          notStored += records;
        },
      });
      const reader = { writer, keepFor: () => recordSettings.keepFor, tenants: sameNames };
      const search = createRequestSearch({ ...source, ...reader });
      return {
        writer,
        history: createRequestHistory({ requestLog: log, ...reader, now: ownNow }),
        notStored: () => notStored,
        /** Ends a request that was received 12 ms ago. */
        end(
          more: Partial<RequestRecord> = {},
          events: Parameters<typeof requestRecord>[1] = [],
        ): RequestRecord {
          const record = requestRecord(
            { receivedAtMs: ownNow() - 12, requestId: randomUUID(), ...more },
            events,
          );
          recentRequests.onRequestEnd(record);
          liveStats.onRequestEnd(record);
          return record;
        },
        /** An event that follows the end of the request. */
        addLate: recentRequests.onLateEvent,
        find: (query: Partial<RequestQuery>) =>
          search.find({ fromMs: 0, toMs: Number.POSITIVE_INFINITY, limit: 1_000, ...query }),
        findOwn: (tenantId: string, requestId: string, limit = 1_000) =>
          search.findOwn(tenantId, requestId, limit),
      };
    },
  };
}

/** Tenants whose identity is their name. */
const sameNames = { recordedAs: (name: string) => [name], nameOf: (recorded: string) => recorded };

/** The request of a client of this tenant, whose identity is its name. */
export const ofTenant = (tenant: string, lane: 'write' | 'read' | 'status' = 'write') => ({
  request: {
    operation: 'getPayment',
    lane,
    client: `client of ${tenant}`,
    tenant,
    tenantId: tenant,
  } as const,
});
