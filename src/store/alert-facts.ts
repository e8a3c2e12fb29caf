/** What alerts need from the database, besides what the gateway reads anyway. */

import { type Database, type Row, textOf } from './database.ts';

export interface StoredFailingEndpoint {
  /** The id. */
  readonly tenant: string;
  /** The origin of its URL. */
  readonly endpoint: string;
  readonly messages: number;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

const dayMs = 86_400_000;
const internalErrorSeconds = 900;
const maxEndpoints = 50;
const maxChanges = 100;

/** Every function @throws DatabaseError. */
export function createAlertFactsTable(database: Database) {
  return {
    /** Endpoints with messages that they have not accepted, the longest failing first. */
    async failingEndpoints(): Promise<readonly StoredFailingEndpoint[]> {
      const rows = await database.query(
        `SELECT f.tenant, f.messages, f.since, (
           SELECT m.endpoint FROM subscription s JOIN webhook_message m
             ON m.payment_id = s.payment_id AND m.environment = s.environment AND m.subscription = s.id
           WHERE s.id = f.sample ORDER BY m.sequence DESC LIMIT 1) AS endpoint
         FROM (
           SELECT tenant, count(*) AS messages, min(failed_since) AS since, min(id) AS sample FROM subscription
           WHERE failed_endpoint IS NOT NULL AND delivery_at IS NOT NULL GROUP BY failed_endpoint, tenant) AS f
         ORDER BY f.since LIMIT ${maxEndpoints}`,
      );
      return rows.map((row) => ({
        tenant: String(row.tenant),
        endpoint: textOf(row.endpoint) ?? 'an endpoint',
        messages: Number(row.messages),
        sinceMs: Number(row.since),
      }));
    },

    /** New kinds of deviations of the last day, whose answers had been checked before. */
    bankChanges: (): Promise<readonly Row[]> =>
      database.query(
        `SELECT environment, operation, path, rule, found_at FROM contract_kind
         WHERE is_change AND found_at > now_ms() - ${dayMs} ORDER BY found_at DESC LIMIT ${maxChanges}`,
      ),

    /** By environment, of the last 15 minutes. `last` is the time and the X-Request-ID of the last one. */
    internalErrors: (): Promise<readonly Row[]> =>
      database.query(
        `SELECT environment, sum(requests) AS requests, max(CAST(last_at AS text) || ' ' || last_request_id) AS last
         FROM minute_error WHERE minute > (SELECT now_ms() / 1000 - ${internalErrorSeconds}) AND code = 'INTERNAL' GROUP BY environment`,
      ),
  };
}

export type AlertFactsTable = ReturnType<typeof createAlertFactsTable>;
