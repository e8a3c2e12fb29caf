/** Creates the records of requests that all instances share: their writer, their search, and their figures. */

import type { RequestLog } from '../state/ports.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { RequestSearch } from '../telemetry/request-search.ts';
import { createRequestSearch, type TenantNames } from './find-requests.ts';
import { createRequestHistory, type RequestHistory } from './request-history.ts';
import { createRequestLogWriter, type RecordSettings } from './request-log-writer.ts';

export interface RequestRecords {
  readonly search: RequestSearch;
  readonly history: RequestHistory;
  /** Writes everything that has ended so far; to be called every second. Never rejects. */
  flush(): Promise<unknown>;
}

interface RequestRecordsDependencies {
  readonly requestLog: RequestLog;
  readonly telemetry: Pick<Telemetry, 'recentRequests' | 'liveStats' | 'metrics'>;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  readonly settings: () => RecordSettings;
  /** How many tenants there are. */
  readonly tenants: () => number;
  readonly tenantNames: TenantNames;
}

export function createRequestRecords({
  requestLog,
  telemetry,
  instance,
  settings,
  tenants,
  tenantNames,
}: RequestRecordsDependencies): RequestRecords {
  const { recentRequests, liveStats, metrics } = telemetry;
  const countNotStored = (records: number) =>
    metrics.increment('penstock_request_records_not_stored_total', {}, records);
  const source = { requestLog, recentRequests, instance };
  const writer = createRequestLogWriter({ ...source, liveStats, settings, tenants, countNotStored });
  const reader = { writer, keepFor: () => settings().keepFor, tenants: tenantNames };
  return {
    search: createRequestSearch({ ...source, ...reader }),
    history: createRequestHistory({ requestLog, ...reader }),
    flush: writer.flush,
  };
}
