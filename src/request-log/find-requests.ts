/** The search in the stored records of all instances. */

import { setImmediate } from 'node:timers/promises';
import { hashPaymentId } from '../request/payment-hash.ts';
import type { RequestLog } from '../state/ports.ts';
import { type RecentRequests, reportOf } from '../telemetry/recent-requests.ts';
import type { RequestQuery, RequestSearch, StoredRequest } from '../telemetry/request-search.ts';
import { readBackwards } from './read-backwards.ts';
import type { RecordHead } from './record-decoder.ts';
import { counterNames, type RequestLogWriter } from './request-log-writer.ts';
import {
  anyError,
  fingerprintOfError,
  fingerprintOfId,
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
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** A search decodes about this many chunks; the caller can continue it. */
const maxChunks = 400;

export function createRequestSearch({
  requestLog,
  writer,
  recentRequests,
  instance,
  keepFor,
  now = Date.now,
}: SearchDependencies): RequestSearch {
  /** The recent requests of this instance: not all of them are stored. */
  function addRecent(matches: Matches, query: RequestQuery): void {
    const { requestId, payment } = query;
    if (requestId === undefined || payment !== undefined) return; // reports contain no payment
    for (const { number, report } of recentRequests.find(requestId)) {
      const { tenant, error = '', servedFrom = '', status } = report;
      const receivedAtMs = Date.parse(report.at);
      if (!matchesCommon({ receivedAtMs, tenant: tenant ?? '', error, servedFrom, status }, query)) continue;
      matches.add({ instance, number, receivedAtMs, isChanged: true, request: { ...report, instance } });
    }
  }

  /** @returns since when all matching records are found: milliseconds since 1970 */
  async function addStored(matches: Matches, query: RequestQuery): Promise<number> {
    const current = sliceOf(now() + clockMarginMs);
    // A later version of a record may be in a later slice.
    const isById = query.requestId !== undefined || query.payment !== undefined;
    const steps = readBackwards(requestLog, {
      fingerprints: fingerprintsOf(query),
      fromMs: query.fromMs,
      toMs: query.toMs,
      newestSlice: isById ? current : Math.min(current, sliceOf(query.toMs) + slicesAfter),
      isWanted: filterOf(query),
    });
    let chunksLeft = maxChunks;
    for await (const { records, chunks, readFromMs } of steps) {
      for (const { instance, record } of records) {
        const { number, receivedAtMs, isChanged } = record;
        const request = { ...reportOf(record), instance };
        matches.add({ instance, number, receivedAtMs, isChanged, request });
      }
      chunksLeft -= chunks;
      const isEnough = chunksLeft <= 0 || matches.since(readFromMs).length >= query.limit;
      if (isEnough && readFromMs > query.fromMs) return Math.min(readFromMs, query.toMs);
      if (chunks > 0) await setImmediate(); // so that requests are served between two steps
    }
    return query.fromMs;
  }

  async function countNotStored({ tenant }: RequestQuery, fromMs: number, toMs: number): Promise<number> {
    const oldest = sliceOf(fromMs);
    const slices = Array.from({ length: sliceOf(toMs) - oldest + 1 }, (_, index) => oldest + index);
    const counters = await Promise.all(slices.map((slice) => requestLog.readCounters(slice)));
    const prefix = counterNames.notStored(tenant ?? '');
    return counters
      .flatMap((each) => [...each])
      .filter(([name]) => (tenant === undefined ? name.startsWith(prefix) : name === prefix))
      .reduce((sum, [, count]) => sum + count, 0);
  }

  return {
    async find(asked) {
      const nowMs = now();
      const query = {
        ...asked,
        fromMs: Math.max(asked.fromMs, nowMs - keepFor()),
        toMs: Math.min(asked.toMs, nowMs + clockMarginMs),
      };
      const matches = createMatches();
      addRecent(matches, query);
      await writer.flush(); // if it fails, the reads fail as well
      try {
        const storedFromMs = await addStored(matches, query);
        const found = matches.since(storedFromMs);
        const last = found.length > query.limit ? found[query.limit - 1] : undefined;
        const searchedFromMs = last?.receivedAtMs ?? storedFromMs;
        return {
          requests: requestsOf(found.filter(({ receivedAtMs }) => receivedAtMs >= searchedFromMs)),
          searchedFromMs,
          isComplete: !last && storedFromMs <= query.fromMs,
          notStored: await countNotStored(query, searchedFromMs, query.toMs),
        };
      } catch (thrown) {
        const recent = matches.since(query.fromMs);
        if (recent.length === 0) throw thrown;
        const searchedFromMs = query.toMs; // only the recent requests of this instance are listed
        return { requests: requestsOf(recent), searchedFromMs, isComplete: false, notStored: 0 };
      }
    },
  };
}

/** A request may end, and its record may be stored, in one of so many slices after that in which it was received. */
const slicesAfter = 2;

function fingerprintsOf({ requestId, payment, tenant, error }: RequestQuery): readonly number[] {
  const idBytes = Buffer.from(requestId ?? '', 'latin1');
  return [
    ...(requestId === undefined ? [] : [fingerprintOfId(idBytes, 0, idBytes.length)]),
    ...(payment === undefined ? [] : [fingerprintOfPayment(hashPaymentId(payment).words)]),
    ...(tenant === undefined ? [] : [fingerprintOfTenant(tenant)]),
    ...(error === undefined ? [] : [fingerprintOfError(error)]),
  ];
}

function filterOf(query: RequestQuery): (record: RecordHead) => boolean {
  const requestId = query.requestId?.toLowerCase();
  const [high, low] = query.payment === undefined ? [] : hashPaymentId(query.payment).words;
  return (record) =>
    (requestId === undefined || record.requestId.toLowerCase() === requestId) &&
    (high === undefined || (record.payment?.[0] === high && record.payment[1] === low)) &&
    matchesCommon(record, query);
}

function matchesCommon(
  record: Pick<RecordHead, 'receivedAtMs' | 'tenant' | 'error' | 'servedFrom' | 'status'>,
  { fromMs, toMs, tenant, error }: RequestQuery,
): boolean {
  const isInTime = record.receivedAtMs >= fromMs && record.receivedAtMs < toMs;
  return isInTime && (tenant === undefined || record.tenant === tenant) && hasError(record, error);
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
