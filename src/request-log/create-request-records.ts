/** Creates the records of requests that all instances share: their writer, their search, and their figures. */

import type { RequestLog } from '../state/ports.ts';
import type { Telemetry } from '../telemetry/create-telemetry.ts';
import type { RequestSearch } from '../telemetry/request-search.ts';
import { createRequestSearch } from './find-requests.ts';
import { createRequestHistory, type RequestHistory } from './request-history.ts';
import { createRequestLogWriter } from './request-log-writer.ts';
import type { ShareSettings } from './tenant-shares.ts';

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
  readonly settings: () => ShareSettings;
  /** How many tenants there are. */
  readonly tenants: () => number;
}

export function createRequestRecords({
  requestLog,
  telemetry,
  instance,
  settings,
  tenants,
}: RequestRecordsDependencies): RequestRecords {
  const { recentRequests, liveStats, metrics } = telemetry;
  const countNotStored = (records: number) =>
    metrics.increment('penstock_request_records_not_stored_total', {}, records);
  const source = { requestLog, recentRequests, instance };
  const writer = createRequestLogWriter({ ...source, liveStats, settings, tenants, countNotStored });
  const keepFor = () => settings().keepFor;
  return {
    search: createRequestSearch({ ...source, writer, keepFor }),
    history: createRequestHistory({ requestLog, writer, keepFor }),
    flush: writer.flush,
  };
}
