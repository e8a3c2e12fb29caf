/** The row of a request in the database, and what operators see of it. */

import { isStrictId, productOf } from '../pis/operations.ts';
import { recordedTenantOf } from '../request/identities.ts';
import type { TimedEvent } from '../request/request-events.ts';
import { type Row, textOf } from '../store/database.ts';
import type { RecordRow } from '../store/request-records.ts';
import { isFailedCall } from '../telemetry/live-stats.ts';
import {
  bankErrorOf,
  lastEvent,
  type RequestRecord,
  type RunningRequest,
  roundMs,
  tenantIdOf,
} from '../telemetry/request-record.ts';
import {
  type RequestOutcome,
  type RequestStep,
  requestOutcomes,
  type StoredRequest,
} from '../telemetry/request-search.ts';

/** @param instance the name of this one */
export function rowOf(record: RequestRecord, instance: string): RecordRow {
  const { request, refusedClient, requestId = '', error, durationMs, events } = record;
  return {
    instance,
    number: record.number,
    received_at: Math.floor(record.receivedAtMs),
    request_id: requestId,
    operation: request?.operation ?? null,
    client: request?.client ?? refusedClient?.name ?? null,
    tenant: tenantIdOf(record) || null,
    environment: record.environment ?? null,
    product: request?.product ?? null,
    payment_id: paymentIdOf(record),
    status: record.status,
    outcome: outcomeOf(record),
    bank_error: bankErrorOf(record) ?? null,
    error: error?.code ?? null,
    why: error?.why ?? null,
    duration_tenths: durationMs === undefined ? null : Math.round(durationMs * 10),
    served_from: record.servedFrom ?? null,
    events: JSON.stringify(stepsOf(events)),
  };
}

/** Of a path that was refused, only an id of the strict set: others may be any text. */
function paymentIdOf({ request, error, events }: RequestRecord): string | null {
  const created = lastEvent(events, 'payment');
  if (created) return storableId(created.paymentId);
  const id = request?.paymentId;
  if (error?.code === 'PAYMENT_UNKNOWN' && id !== undefined && !isStrictId(id)) return null;
  return storableId(id);
}

/** PostgreSQL stores no other texts. */
const storableId = (id: string | undefined): string | null =>
  id?.isWellFormed() && !id.includes('\0') ? id : null;

function outcomeOf({ error, status, servedFrom, events }: RequestRecord): RequestOutcome {
  if (lastEvent(events, 'recorded')?.as === 'in-doubt') return 'in-doubt';
  const late = lastEvent(events, 'late-answer');
  if (late) return outcomeOfStatus(late.status);
  if (error) return isFailedCall(error.code) ? 'failed' : 'refused';
  if (status < 400 && servedFrom === 'bank' && lastEvent(events, 'bank-error')) return 'refused-by-bank';
  return outcomeOfStatus(status);
}

function outcomeOfStatus(status: number): RequestOutcome {
  if (status >= 500) return 'failed';
  return status >= 400 ? 'refused-by-bank' : 'succeeded';
}

/** With one decimal. The id of a payment is no step: it has a column. */
function stepsOf(events: readonly TimedEvent[]): readonly RequestStep[] {
  const steps: RequestStep[] = [];
  for (const { afterMs, event } of events) {
    if (event.what === 'payment') continue;
    const step: Record<string, string | number> = { afterMs: roundMs(afterMs) };
    for (const [name, value] of Object.entries(event))
      step[name] = typeof value === 'number' && name.endsWith('Ms') ? roundMs(value) : value;
    steps.push(step);
  }
  return steps;
}

/** @param tenantNameOf the name of a tenant in a record */
export function requestOf(row: Row | RecordRow, tenantNameOf: (recorded: string) => string): StoredRequest {
  const tenant = textOf(row.tenant);
  const bankError = textOf(row.bank_error);
  const error = textOf(row.error);
  const servedFrom = textOf(row.served_from);
  const { duration_tenths: tenths } = row;
  return {
    at: new Date(Number(row.received_at)).toISOString(),
    xRequestId: String(row.request_id),
    operation: textOf(row.operation) ?? null,
    client: textOf(row.client) ?? null,
    tenant: tenant === undefined ? null : tenantNameOf(tenant),
    environment: textOf(row.environment) ?? null,
    product: textOf(row.product) ?? null,
    paymentId: textOf(row.payment_id) ?? null,
    status: Number(row.status),
    outcome: requestOutcomes.find((outcome) => outcome === row.outcome) ?? 'failed',
    ...(bankError !== undefined && { bankError }),
    ...(error !== undefined && { error, why: textOf(row.why) ?? '' }),
    ...(servedFrom !== undefined && { servedFrom }),
    durationMs: typeof tenths === 'number' ? tenths / 10 : null,
    steps: JSON.parse(String(row.events)),
    instance: String(row.instance),
  };
}

/** A request that has not ended. @param nowMs milliseconds since 1970 */
export function requestOfRunning(
  { request, events }: RunningRequest,
  instance: string,
  nowMs: number,
): StoredRequest {
  const { operation, client, environment, requestId, arrivedAtMs } = request;
  const durationMs = performance.now() - arrivedAtMs;
  return {
    at: new Date(nowMs - durationMs).toISOString(),
    xRequestId: requestId,
    operation: operation.name,
    client: client.name,
    tenant: client.tenant,
    environment: environment?.name ?? null,
    product: productOf(operation),
    paymentId: storableId(operation.paymentId),
    status: null,
    outcome: 'running',
    durationMs: roundMs(durationMs),
    steps: stepsOf(events),
    instance,
  };
}

/** What records contain for the tenant of a running request. */
export const tenantIdOfRunning = ({ request: { client, identities } }: RunningRequest): string =>
  recordedTenantOf(client.tenant, identities);
