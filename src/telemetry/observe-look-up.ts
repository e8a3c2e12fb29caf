/** Logs and counts the look-ups of TPPs. They have no records: a TPP that looks up a request must not find its look-ups. */

import { errorTable, type GatewayError } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';
import { levelOf } from './access-log.ts';
import { type Log, safeStack } from './log.ts';
import type { Metrics } from './metrics.ts';
import { unknownLabel } from './metrics-table.ts';
import { statusClassOf } from './request-metrics.ts';
import { roundMs } from './request-record.ts';

export interface EndedLookUp {
  /** Of the look-up itself. */
  readonly requestId: string;
  /** Milliseconds of `performance.now()`. */
  readonly arrivedAtMs: number;
  /** `undefined` if it was not identified. */
  readonly client: Pick<Client, 'name' | 'tenant'> | undefined;
  /** Only for one that failed, and only if it is known. */
  readonly network: string | undefined;
  /** `undefined` for a success. */
  readonly error: GatewayError | undefined;
}

export type ObserveLookUp = (lookUp: EndedLookUp) => void;

/** As the name of an operation, in log lines and in metrics. */
const operation = 'lookUpRequest';

interface ObserveLookUpDependencies {
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createObserveLookUp({ log, metrics }: ObserveLookUpDependencies): ObserveLookUp {
  return ({ requestId, arrivedAtMs, client, network, error }) => {
    const status = error ? errorTable[error.code].status : 200;
    const durationMs = roundMs(performance.now() - arrivedAtMs);
    metrics.increment('penstock_requests_total', {
      operation,
      environment: unknownLabel,
      status: statusClassOf(status),
      error: error?.code ?? unknownLabel,
      served_from: 'gateway',
    });
    const fields = { requestId, operation, client: client?.name, tenant: client?.tenant, durationMs };
    if (!error) return log('info', 'request', { ...fields, status });
    log(levelOf(error.code), 'request refused', {
      ...fields,
      network,
      status,
      error: error.code,
      why: error.message,
      proxyError: error.proxyError,
      stack: error.code === 'INTERNAL' ? safeStack(error.cause) : undefined,
    });
  };
}
