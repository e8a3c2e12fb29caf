/** The search in the records of all instances. Records contain identities of tenants, results contain their names. */

import type { Row } from '../store/database.ts';
import type { RecordConditions, RequestRecordTable } from '../store/request-records.ts';
import { tenantIdOf } from '../telemetry/request-record.ts';
import type { RequestSearch, SearchResult, StoredRequest } from '../telemetry/request-search.ts';
import type { UnstoredRequests } from '../telemetry/unstored-requests.ts';
import { requestOf, requestOfRunning, rowOf, tenantIdOfRunning } from './request-rows.ts';
import { sharePeriodOf } from './tenant-shares.ts';

interface SearchDependencies {
  readonly table: Pick<RequestRecordTable, 'find' | 'countNotStored'>;
  /** Stores what has ended so far. Never rejects. @returns whether all of it is stored */
  readonly flush: () => Promise<boolean>;
  readonly unstored: Pick<UnstoredRequests, 'running' | 'waiting'>;
  /** The name of this instance. */
  readonly instance: string;
  /** Milliseconds. */
  readonly keepFor: () => number;
  readonly tenants: TenantNames;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** The names of the tenants in records. */
export interface TenantNames {
  /** What records contain for the tenants with this name. */
  recordedAs(name: string): readonly string[];
  /** @param recorded what a record contains */
  nameOf(recorded: string): string;
}

/** How far the clock of another instance may be ahead, so that its records are found at once. */
const clockMarginMs = 60_000;

export function createRequestSearch({
  table,
  flush,
  unstored,
  instance,
  keepFor,
  tenants,
  now = Date.now,
}: SearchDependencies): RequestSearch {
  const viewOf = (row: Row) => requestOf(row, tenants.nameOf);

  /** Requests of this instance that run, for a search by X-Request-ID and tenant only. */
  function runningOf({ requestId, tenants: wanted, ...others }: RecordConditions): readonly StoredRequest[] {
    if (requestId === undefined || isRestricted(others)) return [];
    return unstored
      .running(requestId)
      .filter((one) => !wanted || wanted.includes(tenantIdOfRunning(one)))
      .map((one) => requestOfRunning(one, instance, now()))
      .filter(({ at }) => Date.parse(at) >= others.fromMs && Date.parse(at) < others.toMs);
  }

  /** Records of this instance that wait, while the database is unavailable. */
  function waitingOf({ requestId, tenants: wanted, ...others }: RecordConditions): readonly StoredRequest[] {
    if (requestId === undefined || isRestricted(others)) return [];
    return unstored
      .waiting(requestId)
      .filter((record) => !wanted || wanted.includes(tenantIdOf(record)))
      .map((record) => viewOf(rowOf(record, instance)));
  }

  async function search(conditions: RecordConditions, limit: number): Promise<SearchResult> {
    const running = runningOf(conditions);
    const isStored = await flush(); // a full disk refuses writes, and answers reads
    const { rows, searchedFromMs } = await table.find(conditions, limit);
    const stored = rows.map(viewOf);
    const hasEnded = (one: StoredRequest) => stored.some((other) => isSameRequest(one, other));
    return {
      requests: [
        ...running.filter((one) => !hasEnded(one)),
        ...(isStored ? [] : waitingOf(conditions)),
        ...stored,
      ],
      searchedFromMs,
      isComplete: isStored && searchedFromMs <= conditions.fromMs,
      notStored: await table.countNotStored(
        sharePeriodOf(searchedFromMs),
        sharePeriodOf(conditions.toMs),
        conditions.tenants,
      ),
    };
  }

  return {
    async find({ tenant, payment, limit, ...query }) {
      const conditions: RecordConditions = {
        ...query,
        paymentId: payment,
        tenants: tenant === undefined ? undefined : tenants.recordedAs(tenant),
        fromMs: Math.max(query.fromMs, now() - keepFor()),
        toMs: Math.min(query.toMs, now() + clockMarginMs),
      };
      try {
        return await search(conditions, limit);
      } catch (thrown) {
        const known = [...runningOf(conditions), ...waitingOf(conditions)];
        if (known.length === 0) throw thrown;
        // Only requests of this instance are listed.
        return { requests: known, searchedFromMs: conditions.toMs, isComplete: false, notStored: 0 };
      }
    },

    findOwn: (tenantId, requestId, limit) =>
      search(
        { requestId, tenants: [tenantId], fromMs: now() - keepFor(), toMs: now() + clockMarginMs },
        limit,
      ),
  };
}

/** The time at which a request was received is computed again when it ends. Milliseconds. */
const maxClockDifferenceMs = 50;

/** Whether both are one request of one instance. */
const isSameRequest = (one: StoredRequest, other: StoredRequest): boolean =>
  one.xRequestId.toLowerCase() === other.xRequestId.toLowerCase() &&
  one.instance === other.instance &&
  Math.abs(Date.parse(one.at) - Date.parse(other.at)) <= maxClockDifferenceMs;

/** Whether there are conditions other than a time. */
const isRestricted = ({ fromMs: _, toMs: __, ...others }: Partial<RecordConditions>): boolean =>
  Object.values(others).some((condition) => condition !== undefined);
