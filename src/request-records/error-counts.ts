/** How often each error occurred in each minute, on one instance, as rows. */

import { type Row, textOf } from '../store/database.ts';
import type { ErrorRow } from '../store/request-records.ts';
import { type RequestRecord, tenantIdOf } from '../telemetry/request-record.ts';
import { minuteOf, secondsPerMinute } from './minute-figures.ts';
import { bankErrorOf } from './request-rows.ts';

/** One error: what failed for whom, and how often. */
export interface ErrorCount {
  /** The code of an error that the gateway generated; `null` for an error response of the bank. */
  readonly code: string | null;
  readonly client: string | null;
  readonly tenant: string | null;
  readonly operation: string | null;
  readonly environment: string | null;
  /** The status of an error response of the bank. */
  readonly bankStatus: number | null;
  /** The code in that response. */
  readonly bankError: string | null;
  readonly count: number;
  /** The end of the last one: milliseconds since 1970. */
  readonly lastAtMs: number;
  /** Of the last one. */
  readonly xRequestId: string;
}

export interface ErrorCounts {
  /** Counts the error of a request, if it has one. */
  add(record: RequestRecord): void;
  /** The rows that have changed since the last call. */
  takeChanged(): readonly ErrorRow[];
}

/** Different errors in one minute. More are not counted, so that one instance stores at most about 50 KB a minute. */
const maxErrors = 200;

/** @param now milliseconds since 1970 */
export function createErrorCounts(instance: string, now: () => number = Date.now): ErrorCounts {
  /** By the beginning of the minute, in seconds since 1970, and by what distinguishes errors. */
  const minutes = new Map<number, Map<string, ErrorRow>>();
  let changed = new Map<string, ErrorRow>();
  return {
    add(record) {
      const error = errorOf(record, instance);
      if (!error) return;
      const { minute } = error;
      const rows = minutes.get(Number(minute)) ?? new Map<string, ErrorRow>();
      minutes.set(Number(minute), rows);
      const key = errorKeyOf(error);
      const known = rows.get(key);
      if (!known && rows.size >= maxErrors) return;
      const row = { ...error, requests: Number(known?.requests ?? 0) + 1 };
      rows.set(key, row);
      changed.set(key, row);
    },
    takeChanged() {
      const rows = [...changed.values()];
      changed = new Map();
      for (const at of minutes.keys()) if ((at + 2 * secondsPerMinute) * 1_000 < now()) minutes.delete(at);
      return rows;
    },
  };
}

function errorOf(record: RequestRecord, instance: string): Omit<ErrorRow, 'requests'> | undefined {
  const { requestId, request, refusedClient, environment = '', error, servedFrom, status } = record;
  const isOfBank = !error && servedFrom === 'bank' && status >= 400;
  if (requestId === undefined || (!error && !isOfBank)) return undefined;
  const endedAtMs = Math.floor(record.receivedAtMs + Math.max(0, record.durationMs ?? 0));
  return {
    minute: minuteOf(Math.floor(endedAtMs / 1_000)),
    instance,
    code: error?.code ?? '',
    bank_status: isOfBank ? String(status) : '',
    bank_error: isOfBank ? (bankErrorOf(record) ?? '') : '',
    client: request?.client ?? refusedClient?.name ?? '',
    tenant: tenantIdOf(record),
    operation: request?.operation ?? '',
    environment,
    last_at: endedAtMs,
    last_request_id: requestId,
  };
}

/** Equal for the same error in the same minute. */
export function errorKeyOf(row: Omit<ErrorRow, 'requests'>): string {
  const {
    minute,
    code,
    bank_status: status,
    bank_error: bankError,
    client,
    tenant,
    operation,
    environment,
  } = row;
  return JSON.stringify([minute, code, status, bankError, client, tenant, operation, environment]);
}

/** @param row of a sum over instances and minutes */
export function errorCountOf(row: Row, tenantNameOf: (recorded: string) => string): ErrorCount {
  const known = (column: string) => textOf(row[column]) || null;
  const [lastAt = '', xRequestId = ''] = String(row.last).split(' ');
  const [tenant, bankStatus] = [known('tenant'), known('bank_status')];
  return {
    code: known('code'),
    client: known('client'),
    tenant: tenant === null ? null : tenantNameOf(tenant),
    operation: known('operation'),
    environment: known('environment'),
    bankStatus: bankStatus === null ? null : Number(bankStatus),
    bankError: known('bank_error'),
    count: Number(row.requests),
    lastAtMs: Number(lastAt),
    xRequestId,
  };
}
