/** How often each error occurred in each minute, on one instance, as rows. */

import { type Row, textOf } from '../store/database.ts';
import type { ErrorRow } from '../store/request-records.ts';
import { bankErrorOf, type RequestRecord, tenantIdOf } from '../telemetry/request-record.ts';
import { minuteOf, secondsPerMinute } from './minute-figures.ts';

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

/**
 * Different errors in one minute: of the gateway, and of the bank, so that a bank does not displace those of the gateway. More are not
 * counted: one instance stores at most about 50 KB a minute.
 */
const maxErrors = { ofGateway: 100, ofBank: 100 };
/** Different codes of banks in one minute. More count as `other`, like those that are no code: a bank may send another one each time. */
const maxBankCodes = 20;
const otherCode = 'other';

interface Minute {
  readonly errors: Readonly<Record<keyof typeof maxErrors, Map<string, ErrorRow>>>;
  readonly bankCodes: Set<string>;
}

/** @param now milliseconds since 1970 */
export function createErrorCounts(instance: string, now: () => number = Date.now) {
  /** By its beginning, in seconds since 1970. */
  const minutes = new Map<number, Minute>();
  let changed = new Map<string, ErrorRow>();

  function minuteAt(at: number): Minute {
    const known = minutes.get(at);
    if (known) return known;
    const minute: Minute = {
      errors: { ofGateway: new Map(), ofBank: new Map() },
      bankCodes: new Set(['', otherCode]),
    };
    minutes.set(at, minute);
    return minute;
  }

  return {
    /** Counts the error of a request, if it has one. */
    add(record: RequestRecord): void {
      const error = errorOf(record, instance);
      if (!error) return;
      const { errors, bankCodes } = minuteAt(Number(error.minute));
      const bankCode = String(error.bank_error);
      if (bankCodes.size < maxBankCodes) bankCodes.add(bankCode);
      const counted = bankCodes.has(bankCode) ? error : { ...error, bank_error: otherCode };
      const source = counted.code === '' ? 'ofBank' : 'ofGateway';
      const rows = errors[source];
      const key = errorKeyOf(counted);
      const known = rows.get(key);
      if (!known && rows.size >= maxErrors[source]) return;
      const row = { ...counted, requests: Number(known?.requests ?? 0) + 1 };
      rows.set(key, row);
      changed.set(key, row);
    },
    /** The rows that have changed since the last call. */
    takeChanged(): readonly ErrorRow[] {
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
