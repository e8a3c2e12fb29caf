/** The search in the stored records of all instances. Records contain identities of tenants, results contain their names. */

import { setImmediate } from 'node:timers/promises';
import { hashPaymentId } from '../request/payment-hash.ts';
import type { RequestLog } from '../state/ports.ts';
import { type RecentRequests, type RequestReport, reportOf } from '../telemetry/recent-requests.ts';
import type {
  RequestQuery,
  RequestSearch,
  SearchResult,
  StoredRequest,
} from '../telemetry/request-search.ts';
import { readBackwards } from './read-backwards.ts';
import type { RecordHead } from './record-decoder.ts';
import { counterNames, type RequestLogWriter } from './request-log-writer.ts';
import {
  anyError,
  fingerprintOfError,
  fingerprintOfId,
  fingerprintOfOwnId,
  fingerprintOfPayment,
  fingerprintOfTenant,
  isBankError,
} from './search-terms.ts';
import { clockMarginMs, sliceOf } from './slices.ts';

interface SearchDependencies {
  readonly requestLog: Omit<RequestLog, 'append'>;
  readonly writer: RequestLogWriter;
  readonly recentRequests: Pick<RecentRequests, 'find'>;
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

/** As `RequestQuery`, with what records contain for the tenants. */
interface RecordQuery extends Omit<RequestQuery, 'tenant'> {
  readonly tenants: readonly string[] | undefined;
}

/** A search decodes about this many chunks; the caller can continue it. */
const maxChunks = 400;

export function createRequestSearch({
  requestLog,
  writer,
  recentRequests,
  instance,
  keepFor,
  tenants,
  now = Date.now,
}: SearchDependencies): RequestSearch {
  const requestOf = (report: RequestReport, instance: string): StoredRequest => ({
    ...report,
    tenant: report.tenant === null ? null : tenants.nameOf(report.tenant),
    instance,
  });

  /** The recent requests of this instance: not all of them are stored. */
  function addRecent(matches: Matches, query: RecordQuery): void {
    const { requestId, payment } = query;
    if (requestId === undefined || payment !== undefined) return; // reports contain no payment
    for (const { number, report } of recentRequests.find(requestId)) {
      const { tenant, error = '', servedFrom = '', status } = report;
      const receivedAtMs = Date.parse(report.at);
      if (!matchesCommon({ receivedAtMs, tenant: tenant ?? '', error, servedFrom, status }, query)) continue;
      const request = requestOf(report, instance);
      matches.add({ instance, number, receivedAtMs, isChanged: true, request });
    }
  }

  /** @returns since when all matching records are found: milliseconds since 1970 */
  async function addStored(
    matches: Matches,
    query: RecordQuery,
    fingerprints: Fingerprints,
  ): Promise<number> {
    const current = sliceOf(now() + clockMarginMs);
    // A later version of a record may be in a later slice.
    const isById = query.requestId !== undefined || query.payment !== undefined;
    const steps = readBackwards(requestLog, {
      fingerprints,
      fromMs: query.fromMs,
      toMs: query.toMs,
      newestSlice: isById ? current : Math.min(current, sliceOf(query.toMs) + slicesAfter),
      isWanted: filterOf(query),
    });
    let chunksLeft = maxChunks;
    for await (const { records, chunks, readFromMs } of steps) {
      for (const { instance, record } of records) {
        const { number, receivedAtMs, isChanged } = record;
        const request = requestOf(reportOf(record), instance);
        matches.add({ instance, number, receivedAtMs, isChanged, request });
      }
      chunksLeft -= chunks;
      const isEnough = chunksLeft <= 0 || matches.since(readFromMs).length >= query.limit;
      if (isEnough && readFromMs > query.fromMs) return Math.min(readFromMs, query.toMs);
      if (chunks > 0) await setImmediate(); // so that requests are served between two steps
    }
    return query.fromMs;
  }

  async function countNotStored({ tenants }: RecordQuery, fromMs: number, toMs: number): Promise<number> {
    const oldest = sliceOf(fromMs);
    const slices = Array.from({ length: sliceOf(toMs) - oldest + 1 }, (_, index) => oldest + index);
    const counters = await Promise.all(slices.map((slice) => requestLog.readCounters(slice)));
    const prefix = counterNames.notStored('');
    const names = tenants?.map((tenant) => counterNames.notStored(tenant));
    return counters
      .flatMap((each) => [...each])
      .filter(([name]) => (names ? names.includes(name) : name.startsWith(prefix)))
      .reduce((sum, [, count]) => sum + count, 0);
  }

  /** @param matches the recent requests; the stored ones are added */
  async function search(
    matches: Matches,
    query: RecordQuery,
    fingerprints: Fingerprints,
  ): Promise<SearchResult> {
    await writer.flush(); // if it fails, the reads fail as well
    const storedFromMs = await addStored(matches, query, fingerprints);
    const found = matches.since(storedFromMs);
    const last = found.length > query.limit ? found[query.limit - 1] : undefined;
    const searchedFromMs = last?.receivedAtMs ?? storedFromMs;
    return {
      requests: requestsOf(found.filter(({ receivedAtMs }) => receivedAtMs >= searchedFromMs)),
      searchedFromMs,
      isComplete: !last && storedFromMs <= query.fromMs,
      notStored: await countNotStored(query, searchedFromMs, query.toMs),
    };
  }

  return {
    async find({ tenant, ...asked }) {
      const nowMs = now();
      const query: RecordQuery = {
        ...asked,
        tenants: tenant === undefined ? undefined : tenants.recordedAs(tenant),
        fromMs: Math.max(asked.fromMs, nowMs - keepFor()),
        toMs: Math.min(asked.toMs, nowMs + clockMarginMs),
      };
      const matches = createMatches();
      addRecent(matches, query);
      try {
        return await search(matches, query, fingerprintsOf(query));
      } catch (thrown) {
        const recent = matches.since(query.fromMs);
        if (recent.length === 0) throw thrown;
        const searchedFromMs = query.toMs; // only the recent requests of this instance are listed
        return { requests: requestsOf(recent), searchedFromMs, isComplete: false, notStored: 0 };
      }
    },

    findOwn(tenantId, requestId, limit) {
      const time = { fromMs: now() - keepFor(), toMs: now() + clockMarginMs };
      const query = { requestId, tenants: [tenantId], limit, ...time };
      const matches = createMatches();
      addRecent(matches, query);
      const id = fingerprintOf(requestId);
      const ownId = fingerprintOfOwnId(id, fingerprintOfTenant(tenantId));
      return search(matches, query, [[ownId]]);
    },
  };
}

/** See `BackwardQuery`. */
type Fingerprints = readonly (readonly number[])[];

/** A request may end, and its record may be stored, in one of so many slices after that in which it was received. */
const slicesAfter = 2;

function fingerprintsOf({ requestId, payment, tenants, error }: RecordQuery): Fingerprints {
  return [
    ...(requestId === undefined ? [] : [[fingerprintOf(requestId)]]),
    ...(payment === undefined ? [] : [[fingerprintOfPayment(hashPaymentId(payment).words)]]),
    ...(tenants === undefined ? [] : [tenants.map(fingerprintOfTenant)]),
    ...(error === undefined ? [] : [[fingerprintOfError(error)]]),
  ];
}

function fingerprintOf(requestId: string): number {
  const idBytes = Buffer.from(requestId, 'latin1');
  return fingerprintOfId(idBytes, 0, idBytes.length);
}

function filterOf(query: RecordQuery): (record: RecordHead) => boolean {
  const requestId = query.requestId?.toLowerCase();
  const [high, low] = query.payment === undefined ? [] : hashPaymentId(query.payment).words;
  return (record) =>
    (requestId === undefined || record.requestId.toLowerCase() === requestId) &&
    (high === undefined || (record.payment?.[0] === high && record.payment[1] === low)) &&
    matchesCommon(record, query);
}

function matchesCommon(
  record: Pick<RecordHead, 'receivedAtMs' | 'tenant' | 'error' | 'servedFrom' | 'status'>,
  { fromMs, toMs, tenants, error }: RecordQuery,
): boolean {
  const isInTime = record.receivedAtMs >= fromMs && record.receivedAtMs < toMs;
  return isInTime && (!tenants || tenants.includes(record.tenant)) && hasError(record, error);
}

function hasError(
  { error, servedFrom, status }: Pick<RecordHead, 'error' | 'servedFrom' | 'status'>,
  wanted: string | undefined,
): boolean {
  if (wanted === undefined) return true;
  if (error !== '') return wanted === anyError || wanted === error;
  return isBankError(servedFrom, status) && (wanted === anyError || wanted === String(status));
}

interface Match {
  readonly instance: string;
  /** Identifies the record on its instance. */
  readonly number: number;
  readonly receivedAtMs: number;
  readonly isChanged: boolean;
  readonly request: StoredRequest;
}

/** The records found so far. */
interface Matches {
  /** A later version of a record replaces the first one. */
  add(match: Match): void;
  /** Those that were received at this time or later, newest first. */
  since(ms: number): readonly Match[];
}

const requestsOf = (matches: readonly Match[]) => matches.map(({ request }) => request);

function createMatches(): Matches {
  const byRecord = new Map<string, Match>();
  return {
    add(match) {
      const key = `${match.instance} ${match.number}`;
      if (match.isChanged || !byRecord.has(key)) byRecord.set(key, match);
    },
    since: (ms) =>
      [...byRecord.values()]
        .filter(({ receivedAtMs }) => receivedAtMs >= ms)
        .toSorted((one, other) => other.receivedAtMs - one.receivedAtMs || other.number - one.number),
  };
}
