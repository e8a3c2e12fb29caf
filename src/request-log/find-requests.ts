/** The search in the records of all instances. Records contain identities of tenants, results contain their names. */

import type { Row } from '../store/database.ts';
import type { RecordConditions, RequestRecordTable } from '../store/request-records.ts';
import type { RequestSearch, SearchResult, StoredRequest } from '../telemetry/request-search.ts';
import type { UnstoredRequests } from '../telemetry/unstored-requests.ts';
import { requestOf, requestOfRunning, rowOf, tenantOf, tenantOfRunning } from './request-rows.ts';
import { clockMarginMs, sliceOf } from './slices.ts';

interface SearchDependencies {
  readonly table: Pick<RequestRecordTable, 'find' | 'countNotStored'>;
  /** Stores what has ended so far. Never rejects. */
  readonly flush: () => Promise<unknown>;
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

  /** Requests of this instance that run, for a search by X-Request-ID only. */
  function runningOf({ requestId, tenants: wanted, ...others }: RecordConditions): readonly StoredRequest[] {
    if (requestId === undefined || isRestricted(others)) return [];
    return unstored
      .running(requestId)
      .filter((one) => !wanted || wanted.includes(tenantOfRunning(one)))
      .map((one) => requestOfRunning(one, instance, now()));
  }

  /** Records of this instance that wait, while the database is unavailable. */
  function waitingOf({ requestId, tenants: wanted, ...others }: RecordConditions): readonly StoredRequest[] {
    if (requestId === undefined || isRestricted(others)) return [];
    return unstored
      .waiting(requestId)
      .filter((record) => !wanted || wanted.includes(tenantOf(record)))
      .map((record) => viewOf(rowOf(record, instance)));
  }

  async function search(conditions: RecordConditions, limit: number): Promise<SearchResult> {
    const running = runningOf(conditions);
    await flush(); // if it fails, the read fails as well
    const { rows, searchedFromMs } = await table.find(conditions, limit);
    return {
      requests: [...running, ...rows.map(viewOf)],
      searchedFromMs,
      isComplete: searchedFromMs <= conditions.fromMs,
      notStored: await table.countNotStored(
        sliceOf(searchedFromMs),
        sliceOf(conditions.toMs),
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

/** Whether there are conditions other than a time. */
const isRestricted = ({ fromMs: _, toMs: __, ...others }: Partial<RecordConditions>): boolean =>
  Object.values(others).some((condition) => condition !== undefined);
